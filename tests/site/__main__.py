"""Build the site into build/site; a link that leads nowhere fails: `python -m tests.site`."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.site.pages import lay_out
from tests.tidy.repository import ROOT

CONFIG: Final = ROOT / "zensical.toml"
_PAGES: Final = ROOT / "build" / "pages"
_ZENSICAL: Final = Path(sys.executable).with_name("zensical")


def main() -> None:
    """Lay out the pages, and build."""
    lay_out(_PAGES)
    argv = [str(_ZENSICAL), "build", "--clean", "--strict", "--config-file", str(CONFIG)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr.partition('Traceback')[0]}")
    print("wrote build/site")


if __name__ == "__main__":
    main()
