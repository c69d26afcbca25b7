"""``python -m featherload``: the command line of this interpreter's package."""

from ._command import main

main()
