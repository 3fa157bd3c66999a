"""Write all generated files: `python -m tests.tidy.generate`, or `make fix`."""

from tests.tidy.charts import CHARTS
from tests.tidy.copies import COPIES
from tests.tidy.definitions import DEFINITIONS
from tests.tidy.monitoring.alerts import FILES as ALERTS
from tests.tidy.monitoring.dashboards import FILES as DASHBOARDS
from tests.tidy.pages import PAGES
from tests.tidy.repository import shown


def main() -> None:
    files = {**PAGES, **DEFINITIONS, **COPIES, **CHARTS, **DASHBOARDS, **ALERTS}
    for path, write in files.items():
        text = write()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {shown(path)}")


if __name__ == "__main__":
    main()
