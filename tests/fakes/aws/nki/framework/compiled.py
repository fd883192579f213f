"""A fake of nki.framework.compiled, which exists since nki 0.6 and for which nkitools has no stand-in."""
