"""deploy/kubernetes: Kubernetes takes the manifests, and they agree with klamm and with each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from klamm.cli.live.asking import ADMIN
from klamm.proxy.admin import health
from klamm.proxy.config import Config
from klamm.proxy.session.rewriting.topology import NodeKey, Topology
from klamm.settings.loopback import is_loopback
from tests.deploy.given import DEPLOY, IMAGE, configured, state_folder, user
from tests.fakes.named_files import identity

FILES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
OLDEST = {"sidecar.yaml": "1.29", "deployment.yaml": "1.30", "one-port.yaml": "1.30"}
CLUSTERS = {"one-port.yaml": ["orders", "billing"]}
SERVICE_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?")  # RFC 6335, of all named ports


class Manifest(NamedTuple):
    """A file, and its objects by kind."""

    path: Path
    objects: dict[str, dict[str, Any]]

    @property
    def pod(self) -> dict[str, Any]:
        found: dict[str, Any] = self.objects["Deployment"]["spec"]["template"]["spec"]
        return found

    @property
    def containers(self) -> list[dict[str, Any]]:
        return [*self.pod.get("initContainers", []), *self.pod["containers"]]

    @property
    def klamm(self) -> dict[str, Any]:
        return next(one for one in self.containers if one["name"] == "klamm")

    def mounted(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """The paths that klamm mounts, the kinds of their volumes, and the volumes."""
        volumes = {volume["name"]: volume for volume in self.pod["volumes"]}
        for mount in self.klamm["volumeMounts"]:
            volume = dict(volumes[mount["name"]])
            volume.pop("name")
            ((kind, source),) = volume.items()
            yield mount["mountPath"], kind, source

    def files(self) -> list[tuple[str, str]]:
        """The files that klamm sees, and their contents; a secret of TLS has two."""
        found = []
        for path, kind, source in self.mounted():
            if kind == "configMap":
                config_map = self.objects["ConfigMap"]
                assert source["name"] == config_map["metadata"]["name"]
                found += [(f"{path}/{name}", text) for name, text in config_map["data"].items()]
            elif kind == "secret":
                found += [(f"{path}/tls.crt", identity()), (f"{path}/tls.key", identity())]
        return found


def read(path: Path) -> Manifest:
    objects = list(yaml.safe_load_all(path.read_text()))
    kinds = [one["kind"] for one in objects]
    assert len(set(kinds)) == len(kinds)
    return Manifest(path, dict(zip(kinds, objects, strict=True)))


@pytest.fixture(params=FILES, ids=lambda path: path.name)
def manifest(request: pytest.FixtureRequest) -> Manifest:
    return read(request.param)


@pytest.fixture
def config(manifest: Manifest, tmp_path: Path) -> Config:
    return configured(manifest.klamm["args"], manifest.files(), tmp_path)


def seconds(manifest: Manifest) -> int:
    """Of klamm's preStop."""
    hook = manifest.klamm.get("lifecycle", {}).get("preStop", {"sleep": {"seconds": 0}})
    found: int = hook["sleep"]["seconds"]
    return found


@pytest.fixture
def judge() -> Any:
    import kubernetes_validate  # slow to load, and each test process loads this file

    return kubernetes_validate


def test_kubernetes_takes_every_object(judge: Any, manifest: Manifest) -> None:
    for version in (OLDEST[manifest.path.name], judge.latest_version()):
        for one in manifest.objects.values():
            judge.validate(one, version, strict=True)


def test_a_field_that_kubernetes_does_not_know_is_found(judge: Any, manifest: Manifest) -> None:
    manifest.klamm["readynessProbe"] = {}
    with pytest.raises(judge.ValidationError):
        judge.validate(manifest.objects["Deployment"], judge.latest_version(), strict=True)


def test_klamm_takes_its_arguments_and_its_file(manifest: Manifest, config: Config) -> None:
    assert [cluster.name for cluster in config.clusters] == CLUSTERS.get(manifest.path.name, ["kafka"])


def test_probes_ask_routes_that_exist_at_an_address_that_the_kubelet_reaches(
    manifest: Manifest, config: Config
) -> None:
    listen = config.metrics.listen
    assert listen is not None
    assert listen.host == "0.0.0.0"
    ports = {port["name"]: port["containerPort"] for port in manifest.klamm["ports"]}
    at_start = "/readyz" if manifest.path.name == "sidecar.yaml" else "/healthz"
    paths = {"startupProbe": at_start, "readinessProbe": "/readyz", "livenessProbe": "/healthz"}
    for probe, path in paths.items():
        asked = manifest.klamm[probe]["httpGet"]
        assert (asked["path"], ports[asked["port"]]) == (path, listen.port)
        assert path in health.PATHS.split()


def test_the_admin_api_is_for_the_pod_alone_where_commands_in_it_ask(config: Config) -> None:
    assert config.admin.listen is not None
    assert is_loopback(config.admin.listen.host)
    assert str(config.admin.listen) == ADMIN


def test_the_grace_period_has_room_for_the_drain(manifest: Manifest, config: Config) -> None:
    needed = seconds(manifest) + config.limits.drain_s
    assert manifest.pod["terminationGracePeriodSeconds"] >= needed + 5


def test_klamm_has_no_rights_that_it_does_not_need(manifest: Manifest) -> None:
    assert manifest.klamm["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": user(),
        "runAsGroup": user(),
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert manifest.pod["automountServiceAccountToken"] is False


def test_klamm_writes_only_where_a_volume_is(manifest: Manifest, config: Config) -> None:
    folders = [path for path, kind, _ in manifest.mounted() if kind == "emptyDir"]
    assert folders == ([] if config.state.folder is None else [state_folder()])
    assert config.log.file is config.capture is None


def test_no_mount_lies_in_another(manifest: Manifest) -> None:
    paths = [path for path, _, _ in manifest.mounted()]
    assert [one for one in paths for other in paths if one.startswith(f"{other}/")] == []


def test_the_image_is_this_version(manifest: Manifest) -> None:
    assert manifest.klamm["image"] == IMAGE


def test_names_of_ports_are_names_of_services(manifest: Manifest) -> None:
    ports = [port for container in manifest.containers for port in container.get("ports", [])]
    ports += manifest.objects.get("Service", {"spec": {"ports": []}})["spec"]["ports"]
    assert ports
    assert [port["name"] for port in ports if not SERVICE_NAME.fullmatch(port["name"])] == []


def test_selectors_find_the_pods(manifest: Manifest) -> None:
    deployment = manifest.objects["Deployment"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == labels
    for kind in {"Service", "PodDisruptionBudget"} & manifest.objects.keys():
        selector = manifest.objects[kind]["spec"]["selector"]
        assert selector.get("matchLabels", selector) == labels


@pytest.fixture
def sidecar() -> Manifest:
    return read(DEPLOY / "kubernetes" / "sidecar.yaml")


@pytest.fixture
def service() -> Manifest:
    return read(DEPLOY / "kubernetes" / "deployment.yaml")


@pytest.fixture
def one_port() -> Manifest:
    return read(DEPLOY / "kubernetes" / "one-port.yaml")


def test_the_sidecar_starts_before_the_application_and_ends_after_it(sidecar: Manifest) -> None:
    (klamm,) = sidecar.pod["initContainers"]
    assert klamm["restartPolicy"] == "Always"
    (application,) = sidecar.pod["containers"]
    assert application["name"] != "klamm"


def test_the_application_of_the_sidecar_asks_klamm_at_its_own_localhost(
    sidecar: Manifest, tmp_path: Path
) -> None:
    (cluster,) = configured(sidecar.klamm["args"], sidecar.files(), tmp_path).clusters
    (variable,) = sidecar.pod["containers"][0]["env"]
    assert variable["value"] == f"localhost:{cluster.listen.first}"
    assert is_loopback(cluster.listen.host)
    assert cluster.advertise is None


def test_the_service_has_the_port_of_each_broker(service: Manifest, tmp_path: Path) -> None:
    (cluster,) = configured(service.klamm["args"], service.files(), tmp_path).clusters
    topology = Topology(cluster.listen.first, cluster.listen.ports[-1])
    ports = service.objects["Service"]["spec"]["ports"]
    assert [port["targetPort"] for port in ports] == [port["port"] for port in ports]
    found = {port["name"]: port["port"] for port in ports}
    assert found.pop("bootstrap") == cluster.listen.first
    assert len(found) == 3
    for name, port in found.items():
        assert port == topology.port_for(NodeKey("broker", int(name.removeprefix("broker-"))))


def test_clients_are_told_the_name_of_the_service(service: Manifest, tmp_path: Path) -> None:
    (cluster,) = configured(service.klamm["args"], service.files(), tmp_path).clusters
    names = {(one["metadata"]["name"], one["metadata"]["namespace"]) for one in service.objects.values()}
    assert names == {("klamm", "kafka")}
    assert cluster.advertise == "klamm.kafka.svc.cluster.local"


@pytest.mark.parametrize(("file", "count"), [("deployment.yaml", 1), ("one-port.yaml", 2)])
def test_klamm_can_read_the_certificates_and_others_cannot(file: str, count: int) -> None:
    service = read(DEPLOY / "kubernetes" / file)
    secrets = [source for _, kind, source in service.mounted() if kind == "secret"]
    assert [secret["defaultMode"] for secret in secrets] == [0o440] * count
    assert service.pod["securityContext"] == {"fsGroup": user()}


def test_the_service_with_one_port_is_that_of_every_name(one_port: Manifest, tmp_path: Path) -> None:
    clusters = configured(one_port.klamm["args"], one_port.files(), tmp_path).clusters
    (port,) = one_port.objects["Service"]["spec"]["ports"]
    (container,) = (each for each in one_port.klamm["ports"] if each["name"] == port["targetPort"])
    listening, told = set(), set()
    for cluster in clusters:
        assert cluster.names is not None
        listening.add((cluster.listen.host, cluster.listen.first))
        told.add(cluster.names.port)
        suffix = f".{cluster.name}.kafka.example.com"
        assert cluster.names.bootstrap == f"bootstrap{suffix}"
        assert cluster.names.nodes == f"broker-$(node){suffix}"
        assert f"*{suffix}" in one_port.path.read_text()
    assert listening == {("0.0.0.0", container["containerPort"])}
    assert told == {port["port"]}


def test_each_cluster_behind_one_port_has_a_secret_that_the_manifest_does_not_write(
    one_port: Manifest, tmp_path: Path
) -> None:
    clusters = configured(one_port.klamm["args"], one_port.files(), tmp_path).clusters
    mounts = {path: source["secretName"] for path, kind, source in one_port.mounted() if kind == "secret"}
    assert "Secret" not in one_port.objects
    for cluster in clusters:
        assert cluster.listen_tls is not None
        name = mounts[f"/etc/klamm-{cluster.name}"]
        assert f"/etc/klamm-{cluster.name}/tls.crt" in cluster.listen_tls.cert
        assert f"kubectl -n kafka create secret tls {name} " in one_port.path.read_text()


def test_the_sidecar_leaves_the_rights_of_the_application_alone(sidecar: Manifest) -> None:
    assert "securityContext" not in sidecar.pod


def test_the_certificate_is_a_secret_that_the_manifest_does_not_write(service: Manifest) -> None:
    (name,) = [source["secretName"] for _, kind, source in service.mounted() if kind == "secret"]
    assert f"kubectl -n kafka create secret tls {name} " in service.path.read_text()
    assert "Secret" not in service.objects
