"""What feeds of metrics are fed with, and what comes out of them."""

from datetime import datetime, timedelta

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from karpy.adapters.mirror.records import IndexedShelf, RecordBook
from karpy.adapters.telemetry.metrics import Metrics
from karpy.adapters.telemetry.specs import metric_specs
from karpy.model.notices import Notice
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord, NodeRecord, PoolRecord
from karpy.ports.records import Kept
from tests.builders import NODE_CLASS_LABEL, NOON


class Book:
    """Records that are written by hand, a clock that is set by hand, and metrics of both."""

    def __init__(self) -> None:
        self.records = RecordBook(IndexedShelf(lambda pod: pod.node_name))
        self.time = NOON
        specs = metric_specs(node_class_labels=[NODE_CLASS_LABEL])
        self.metrics = Metrics(specs, today=self.today)
        self.notices: list[Notice] = []

    def now(self) -> datetime:
        return self.time

    def today(self) -> float:
        return self.time.timestamp()

    def wait(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)

    def emit(self, notice: Notice) -> None:
        self.notices.append(notice)

    def put_pods(self, *pods: Pod) -> None:
        for pod in pods:
            self.records.pods.put(pod.key, pod)

    def put_node(self, node: NodeRecord) -> None:
        self.records.nodes.put(node.name, Kept(node, {}))

    def put_claim(self, claim: ClaimRecord) -> None:
        self.records.claims.put(claim.name, Kept(claim, {}))

    def put_pool(self, pool: PoolRecord) -> None:
        self.records.pools.put(pool.name, Kept(pool, {}))

    def told(self, metric: str, *labels: str) -> dict[str, float]:
        """Return the values of a metric by those labels, all series that they do not tell apart."""
        return {
            " ".join(each.labels[label] for label in labels): each.value
            for each in self._samples(metric)
        }

    def labels(self, metric: str) -> list[dict[str, str]]:
        """Return the labels of all series of a metric."""
        return [each.labels for each in self._samples(metric)]

    def _samples(self, metric: str) -> list[Sample]:
        text = self.metrics.render().decode()
        return [
            sample
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name in {metric, f"karpenter_{metric}"}
        ]
