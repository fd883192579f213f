"""MaskedTensor: a view with lanes that an instruction writes, and others that it leaves as they are."""

from __future__ import annotations

from typing import NoReturn, Self

import numpy as np

from nkitools.chip import view_checks
from nkitools.chip.dtypes import DType
from nkitools.chip.indexing import Key
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor


class MaskedTensor(NkiTensor):
    """A view that is written only at elements whose ``where`` is true, and read whole."""

    __slots__ = ("where",)

    direct = False
    where: Array

    @classmethod
    def of(cls, tensor: NkiTensor, where: Array) -> MaskedTensor:
        """``tensor`` under the mask ``where`` (bool, of its shape)."""
        self = cls.__new__(cls)
        self._set(tensor.storage, tensor.array, tensor.dtype, tensor.byte_offset)
        self.where = where
        return self

    def __getitem__(self, key: Key) -> Self:
        return self._indexed(key if type(key) is tuple else (key,))

    def _view(self, array: Array, byte_offset: int, dtype: DType | None = None) -> NoReturn:
        view_checks.wrong_call(self, "a view under a mask is final: no other view is made of it")

    def write(self, values: Array) -> None:
        """Write ``values`` at the elements of the mask; the others stay."""
        np.copyto(self.array, values, where=self.where)
