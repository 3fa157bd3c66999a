"""Run Helm on the charts of this repository."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.tidy.charts import CHART, CRD_CHART

NAMED: Final = ("--set", "settings.clusterName=shop")
"""The one value that the default provider needs."""
__all__ = ["CHART", "CRD_CHART", "NAMED", "Helm", "HelmFailed", "only"]


class HelmFailed(Exception):
    """Helm fails; the text is its output."""


class Helm:
    """Runs Helm with its own home folder, on a cluster if there is a kubeconfig."""

    def __init__(self, program: Path, home: Path, kubeconfig: Path | None = None) -> None:
        self._program = program
        self._environ: Mapping[str, str] = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KUBECONFIG": str(kubeconfig or home / "none"),
        }

    def __call__(self, *words: str | Path) -> str:
        """Run a command and return its answer; raise HelmFailed."""
        done = subprocess.run(
            [self._program, *words], env=self._environ, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise HelmFailed(done.stdout + done.stderr)
        return done.stdout

    def template(self, *words: str | Path, chart: Path = CHART) -> list[dict[str, Any]]:
        """Render the objects of a chart as release `karpenter` of namespace `karpenter`."""
        text = self("template", "karpenter", chart, "--namespace", "karpenter", *words)
        return [each for each in yaml.safe_load_all(text) if each]


def only(objects: list[dict[str, Any]], kind: str, name: str = "karpenter") -> dict[str, Any]:
    """Return the only object of a kind and name."""
    (found,) = [
        each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)
    ]
    return found
