"""A fake of AWS's compiler package."""
