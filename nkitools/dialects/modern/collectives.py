"""``nki.collectives``: communication between the ranks of a run, ``nkitools.simulate(kernel, ..., ranks=N)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkitools.dialects.modern.objects import NKIObject
from nkitools.dialects.public import find, publish
from nkitools.issue import replica_groups

if TYPE_CHECKING:
    from nkitools.isa.collectives import *
    from nkitools.isa.collectives_permute import *
    from nkitools.isa.collectives_variable import *


class ReplicaGroup(replica_groups.ReplicaGroup, NKIObject):
    """The ranks that take part in a collective together: ``ReplicaGroup([[0, 1], [2, 3]])``.

    Errors: NK609. Source: nki.collectives.ReplicaGroup (NKI 0.6).
    """


publish(globals(), "nki.collectives")


def __getattr__(name: str) -> Any:
    return find(globals(), "nki.collectives", name)
