"""Jobs, and how their pods end."""

from karpy.codec.fields import JsonObject
from tests.sim.workloads.stage import Stage, template

COMPLETE = {
    "SuccessCriteriaMet": ("True", "CompletionsReached"),
    "Complete": ("True", "CompletionsReached"),
}


def job_spec(**spec: object) -> JsonObject:
    return {"template": {"spec": {**template("x")["spec"], "restartPolicy": "Never"}}, **spec}


def end_pods(stage: Stage, phase: str, *pods: str, code: int = 0) -> None:
    """Have pods end; all that run if none is named."""
    for pod in pods or stage.pod_names():
        ended = {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}
        statuses = [{"name": "app", "restartCount": 0, "state": {"terminated": ended}}]
        stage.report(pod, phase, containerStatuses=statuses if code else [])


def running_pods(stage: Stage) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in stage.pods()
        if pod["status"]["phase"] in {"Pending", "Running"}
    ]


def condition_types(job: JsonObject) -> list[str]:
    return [each["type"] for each in (job.get("status") or {}).get("conditions") or ()]
