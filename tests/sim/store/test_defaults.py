from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    CRON_JOB,
    CUSTOM_RESOURCE,
    DAEMON_SET,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    JOB,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SECRET,
    SERVICE,
    STATEFUL_SET,
    STORAGE_CLASS,
)
from karpy.sim.store.store import Store
from tests.sim.store.worlds import (
    NOW,
    a_definition,
    a_deployment,
    labelled,
    merge_of,
    with_spec,
)


def test_a_deployment_is_filled_in(store: Store) -> None:
    spec = store.create(DEPLOYMENT, a_deployment())["spec"]

    assert {key: spec[key] for key in spec if key not in {"selector", "template"}} == {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
        },
    }
    template = spec["template"]["spec"]
    assert template["restartPolicy"] == "Always"
    assert "tolerations" not in template
    assert "enableServiceLinks" not in template


def test_what_recreates_does_not_roll(store: Store) -> None:
    made = store.create(DEPLOYMENT, a_deployment(strategy={"type": "Recreate"}))

    assert made["spec"]["strategy"] == {"type": "Recreate"}


def test_the_other_workloads_are_filled_in(store: Store) -> None:
    replicas = store.create(REPLICA_SET, a_deployment())["spec"]
    daemons = store.create(DAEMON_SET, a_deployment())["spec"]
    stateful = store.create(STATEFUL_SET, a_deployment())["spec"]

    assert replicas["replicas"] == 1
    assert daemons["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
    }
    assert stateful["podManagementPolicy"] == "OrderedReady"
    assert stateful["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"partition": 0},
    }


def test_a_replication_controller_takes_its_selector_from_its_pods(store: Store) -> None:
    made = store.create(REPLICATION_CONTROLLER, a_deployment(selector=None))

    assert made["spec"]["selector"] == {"app": "web"}
    assert made["metadata"]["labels"] == {"app": "web"}


def job_spec(**spec: object) -> JsonObject:
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    return {
        "metadata": {"name": "job", "namespace": "default"},
        "spec": {"template": {"spec": pod}, **spec},
    }


def test_a_job_is_filled_in_and_selects_its_own_pods(store: Store) -> None:
    made = store.create(JOB, job_spec())

    uid, spec = made["metadata"]["uid"], made["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (1, 1, 6)
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert spec["template"]["metadata"]["labels"] == {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "job",
        "controller-uid": uid,
        "job-name": "job",
    }


def test_a_job_that_only_says_how_many_at_once_has_no_end(store: Store) -> None:
    spec = store.create(JOB, job_spec(parallelism=3))["spec"]

    assert spec["parallelism"] == 3
    assert "completions" not in spec


def test_a_cron_job_is_filled_in(store: Store) -> None:
    made = store.create(
        CRON_JOB,
        {
            "metadata": {"name": "cron", "namespace": "default"},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job_spec()["spec"]}},
        },
    )

    spec = made["spec"]
    assert spec["concurrencyPolicy"] == "Allow"
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)
    assert spec["jobTemplate"]["spec"]["template"]["spec"]["dnsPolicy"] == "ClusterFirst"


def test_a_service_gets_an_address(store: Store) -> None:
    made = store.create(
        SERVICE,
        {"metadata": {"name": "s", "namespace": "default"}, "spec": {"ports": [{"port": 80}]}},
    )

    spec = made["spec"]
    assert spec["type"] == "ClusterIP"
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert made["status"] == {"loadBalancer": {}}


def test_a_node_can_give_what_it_has_unless_it_says_so(store: Store) -> None:
    made = store.create(NODE, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": 4}}})
    patch = merge_of({"status": {"capacity": {"memory": "2048Mi"}, "allocatable": {"cpu": "3.5"}}})

    changed = store.patch(NODE, "n", patch, subresource="status")

    assert made["status"] == {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}
    assert changed["status"] == {
        "capacity": {"cpu": "4", "memory": "2Gi"},
        "allocatable": {"cpu": "3500m"},
    }


def test_storage_is_filled_in(store: Store) -> None:
    classes = store.create(STORAGE_CLASS, {"metadata": {"name": "s"}, "provisioner": "a.b/c"})
    claim = store.create(
        PERSISTENT_VOLUME_CLAIM,
        {
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1024Mi"}},
            },
        },
    )
    volume = store.create(PERSISTENT_VOLUME, {"metadata": {"name": "v"}, "spec": {"capacity": {}}})

    assert (classes["reclaimPolicy"], classes["volumeBindingMode"]) == ("Delete", "Immediate")
    assert claim["spec"]["volumeMode"] == "Filesystem"
    assert claim["spec"]["resources"]["requests"]["storage"] == "1Gi"
    assert claim["status"] == {"phase": "Pending"}
    assert volume["status"] == {"phase": "Pending", "lastPhaseTransitionTime": NOW}


def test_small_kinds_are_filled_in(store: Store) -> None:
    budget = store.create(
        DISRUPTION_BUDGET, {"metadata": {"name": "b", "namespace": "default"}, "spec": {}}
    )
    secret = store.create(SECRET, {"metadata": {"name": "s", "namespace": "default"}})
    definition = store.create(CUSTOM_RESOURCE, a_definition())

    assert budget["status"]["disruptionsAllowed"] == 0
    assert secret["type"] == "Opaque"
    assert definition["spec"]["names"]["singular"] == "widget"


def test_defaults_survive_a_replacement_that_leaves_them_out(store: Store) -> None:
    made = store.create(DEPLOYMENT, a_deployment(replicas=2))
    wish = labelled(a_deployment(replicas=2), app="web")

    changed = store.replace(DEPLOYMENT, wish)

    assert changed["spec"] == made["spec"]
    assert changed["metadata"]["generation"] == 1


def test_a_replaced_deployment_falls_back_to_defaults(store: Store) -> None:
    store.create(DEPLOYMENT, a_deployment(replicas=2))

    changed = store.replace(DEPLOYMENT, with_spec(a_deployment()))

    assert changed["spec"]["replicas"] == 1


def test_a_daemon_set_counts_its_templates(store: Store) -> None:
    made = store.create(DAEMON_SET, a_deployment())
    template = made["spec"]["template"]
    hosted = {**template, "spec": {**template["spec"], "hostNetwork": True}}

    same = store.replace(DAEMON_SET, with_spec(made, minReadySeconds=1))
    other = store.replace(DAEMON_SET, with_spec(same, template=hosted))

    numbers = [each["metadata"]["annotations"] for each in (made, same, other)]
    key = "deprecated.daemonset.template.generation"
    assert numbers == [{key: "1"}, {key: "1"}, {key: "2"}]


def test_workloads_start_with_nothing_counted(store: Store) -> None:
    assert store.create(REPLICA_SET, a_deployment())["status"] == {"replicas": 0}
    assert store.create(STATEFUL_SET, a_deployment())["status"] == {
        "replicas": 0,
        "availableReplicas": 0,
    }


def test_a_job_without_labels_has_those_of_its_pods(store: Store) -> None:
    made = store.create(JOB, job_spec())
    own = store.create(
        JOB,
        {**job_spec(), "metadata": {"name": "own", "namespace": "default", "labels": {"a": "b"}}},
    )

    assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"]
    assert own["metadata"]["labels"] == {"a": "b"}
