"""``python -m candelabra``: the command ``candelabra``."""

from candelabra._cli.main import main

raise SystemExit(main())
