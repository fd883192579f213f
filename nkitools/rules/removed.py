"""What of earlier NKI versions is gone, and what took its place.

Names and arguments come from the table of versions, forms of writing are listed here. Source: NKI Migration Guides
(SDK 2.32), the API references of NKI 0.6 and of SDK 2.26.
"""

from nkitools.dialects.versions import removed

FORMS = {
    "buffer='sbuf'": "Pass the memory itself: nl.sbuf, nl.psum, nl.hbm, nl.private_hbm, nl.shared_hbm.",
    "buffer=nki.compiler.sbuf.mod_alloc(...)": "Pass nl.ndarray(..., address=(partition, byte offset)), tile by tile.",
    "result = nisa.reciprocal(x)": "Instructions take their destination: nisa.reciprocal(dst=result, data=x).",
    "x + y": "Call nl.add(x, y).",
    "tile[...] = value": "Call nisa.tensor_copy(dst=tile, src=value); of a number nisa.memset(dst=tile, value=0).",
}

REPLACEMENTS: tuple[tuple[str, str], ...] = (*removed(), *FORMS.items())
