"""A fake of nki.compiler."""
