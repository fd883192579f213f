"""The page: one self-contained HTML file that shows a run from the inside.

`page` makes its text and `write_page` a file. Python gathers its data as tables and bytes (`gathered`): `tiles` packs
values, `occupancy` lays out SBUF and PSUM, `comparison` finds the elements that differ from the reference.
``assets`` holds the templates, the style and the JavaScript modules, which `document` puts together.
"""

from nkitools.report.page.document import in_frame, page, write_page

__all__ = ["in_frame", "page", "write_page"]
