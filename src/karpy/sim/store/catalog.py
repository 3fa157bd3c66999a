"""The built-in kinds with their rules and schemas."""

from typing import Final

from msgspec.structs import replace

from karpy.codec.patches.schemas import schema_of
from karpy.model import kinds
from karpy.model.kinds import Kind
from karpy.sim.store.checks import bounds as bound_checks
from karpy.sim.store.checks import others as checks
from karpy.sim.store.checks import pods as pod_checks
from karpy.sim.store.checks import workloads as workload_checks
from karpy.sim.store.defaults import others as defaults
from karpy.sim.store.defaults import pods as pod_defaults
from karpy.sim.store.defaults import volumes as volume_defaults
from karpy.sim.store.defaults import workloads as workload_defaults
from karpy.sim.store.eventviews import from_events_api, to_events_api
from karpy.sim.store.namespaces import begin_namespace, default_namespace, keep_finalizers
from karpy.sim.store.registry import ORPHAN, Rules, ScalePaths, Served

_SCALE: Final = ScalePaths()
_GUARDED: Final = Rules(is_guarded=True)
_HAVE_GENERATION: Final = frozenset(
    {
        kinds.POD,
        kinds.POD_TEMPLATE,
        kinds.REPLICATION_CONTROLLER,
        kinds.DEPLOYMENT,
        kinds.REPLICA_SET,
        kinds.STATEFUL_SET,
        kinds.DAEMON_SET,
        kinds.JOB,
        kinds.CRON_JOB,
        kinds.DISRUPTION_BUDGET,
        kinds.PRIORITY_CLASS,
        kinds.CUSTOM_RESOURCE,
    }
)
_IN_ALL: Final = frozenset(
    {
        kinds.POD,
        kinds.SERVICE,
        kinds.REPLICATION_CONTROLLER,
        kinds.DEPLOYMENT,
        kinds.REPLICA_SET,
        kinds.STATEFUL_SET,
        kinds.DAEMON_SET,
        kinds.JOB,
        kinds.CRON_JOB,
    }
)
_BEGIN: Final = workload_defaults.begin_with_empty_status
_RULES: Final[dict[Kind, Rules]] = {
    kinds.POD: Rules(
        pod_defaults.default_pod,
        pod_defaults.begin_pod,
        pod_checks.check_pod,
        pod_checks.compare_pods,
    ),
    kinds.NODE: Rules(
        defaults.default_node,
        None,
        checks.check_node,
        checks.compare_nodes,
        keeps_status=True,
        status_fields=("capacity", "allocatable"),
    ),
    kinds.NAMESPACE: Rules(
        default_namespace, begin_namespace, keep=keep_finalizers, is_name_label=True
    ),
    kinds.SERVICE: Rules(
        defaults.default_service,
        defaults.begin_service,
        checks.check_service,
        checks.compare_services,
        defaults.keep_address,
        is_name_label=True,
    ),
    kinds.SECRET: Rules(defaults.default_secret),
    kinds.POD_TEMPLATE: Rules(
        workload_defaults.default_pod_template, None, workload_checks.check_pod_template
    ),
    kinds.REPLICATION_CONTROLLER: Rules(
        workload_defaults.default_replication_controller,
        workload_defaults.begin_replicas,
        workload_checks.check_replication_controller,
        propagation=ORPHAN,
    ),
    kinds.PERSISTENT_VOLUME: Rules(volume_defaults.default_volume, volume_defaults.begin_volume),
    kinds.PERSISTENT_VOLUME_CLAIM: Rules(
        volume_defaults.default_claim,
        volume_defaults.begin_claim,
        checks.check_claim,
        checks.compare_claims,
    ),
    kinds.LIMIT_RANGE: Rules(defaults.default_limit_range, None, bound_checks.check_limit_range),
    kinds.RESOURCE_QUOTA: Rules(
        defaults.default_resource_quota,
        None,
        bound_checks.check_resource_quota,
        bound_checks.compare_resource_quotas,
    ),
    kinds.DEPLOYMENT: Rules(
        workload_defaults.default_deployment,
        _BEGIN,
        workload_checks.check_workload,
        workload_checks.compare_workloads,
    ),
    kinds.REPLICA_SET: Rules(
        workload_defaults.default_replica_set,
        workload_defaults.begin_replicas,
        workload_checks.check_workload,
        workload_checks.compare_workloads,
    ),
    kinds.STATEFUL_SET: Rules(
        workload_defaults.default_stateful_set,
        workload_defaults.begin_stateful_set,
        workload_checks.check_workload,
        workload_checks.compare_stateful_sets,
    ),
    kinds.DAEMON_SET: Rules(
        workload_defaults.default_daemon_set,
        workload_defaults.begin_daemon_set,
        workload_checks.check_workload,
        workload_checks.compare_workloads,
        workload_defaults.keep_template_number,
    ),
    kinds.JOB: Rules(
        workload_defaults.default_job,
        workload_defaults.begin_job,
        workload_checks.check_job,
        workload_checks.compare_jobs,
        propagation=ORPHAN,
    ),
    kinds.CRON_JOB: Rules(
        workload_defaults.default_cron_job, _BEGIN, workload_checks.check_cron_job
    ),
    kinds.DISRUPTION_BUDGET: Rules(
        defaults.default_budget, defaults.begin_budget, checks.check_budget, is_guarded=True
    ),
    kinds.PRIORITY_CLASS: Rules(
        defaults.default_priority_class,
        None,
        checks.check_priority_class,
        checks.compare_priority_classes,
    ),
    kinds.RUNTIME_CLASS: Rules(
        defaults.default_runtime_class,
        None,
        checks.check_runtime_class,
        checks.compare_runtime_classes,
        is_guarded=True,
    ),
    kinds.STORAGE_CLASS: Rules(
        volume_defaults.default_class, None, checks.check_class, checks.compare_classes
    ),
    kinds.CSI_NODE: _GUARDED,
    kinds.VOLUME_ATTACHMENT: _GUARDED,
    kinds.LEASE: _GUARDED,
    kinds.CUSTOM_RESOURCE: Rules(
        defaults.default_definition,
        None,
        checks.check_definition,
        checks.compare_definitions,
        is_guarded=True,
    ),
}


def _served(kind: Kind, *short_names: str, also: str = "") -> Served:
    subresources = frozenset(also.split())
    return Served(
        kind=kind,
        storage=kind,
        singular=kind.name.lower(),
        short_names=short_names,
        categories=("all",) if kind in _IN_ALL else (),
        subresources=subresources,
        has_generation=kind in _HAVE_GENERATION,
        scale=_SCALE if "scale" in subresources else None,
        rules=_RULES.get(kind, Rules()),
        schema=schema_of(kind),
    )


def built_in() -> tuple[Served, ...]:
    """Return the built-in kinds that the embedded cluster serves."""
    return (
        _served(kinds.POD, "po", also="status binding eviction"),
        _served(kinds.NODE, "no", also="status"),
        _served(kinds.NAMESPACE, "ns", also="status finalize"),
        _served(kinds.EVENT, "ev"),
        _served(kinds.SERVICE, "svc", also="status"),
        _served(kinds.CONFIG_MAP, "cm"),
        _served(kinds.SECRET),
        _served(kinds.SERVICE_ACCOUNT, "sa"),
        _served(kinds.POD_TEMPLATE),
        _served(kinds.REPLICATION_CONTROLLER, "rc", also="status scale"),
        _served(kinds.PERSISTENT_VOLUME, "pv", also="status"),
        _served(kinds.PERSISTENT_VOLUME_CLAIM, "pvc", also="status"),
        _served(kinds.LIMIT_RANGE, "limits"),
        _served(kinds.RESOURCE_QUOTA, "quota", also="status"),
        _served(kinds.DEPLOYMENT, "deploy", also="status scale"),
        _served(kinds.REPLICA_SET, "rs", also="status scale"),
        _served(kinds.STATEFUL_SET, "sts", also="status scale"),
        _served(kinds.DAEMON_SET, "ds", also="status"),
        _served(kinds.CONTROLLER_REVISION),
        _served(kinds.JOB, also="status"),
        _served(kinds.CRON_JOB, "cj", also="status"),
        _served(kinds.DISRUPTION_BUDGET, "pdb", also="status"),
        _served(kinds.PRIORITY_CLASS, "pc"),
        _served(kinds.RUNTIME_CLASS),
        _served(kinds.STORAGE_CLASS, "sc"),
        _served(kinds.CSI_NODE),
        _served(kinds.VOLUME_ATTACHMENT, also="status"),
        _served(kinds.LEASE),
        replace(
            _served(kinds.EVENTS_EVENT, "ev"),
            storage=kinds.EVENT,
            to_storage=from_events_api,
            from_storage=to_events_api,
        ),
        _served(kinds.CUSTOM_RESOURCE, "crd", "crds", also="status"),
    )
