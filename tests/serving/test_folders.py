"""The files from which an export is run, checked by the programs that read them."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from keras_attnvariants.serving import folders
from keras_attnvariants.serving.folders import INFO
from keras_attnvariants.serving.folders import megabytes
from keras_attnvariants.serving.folders import write_deployment
from tests.serving.configs import ModelServerConfig
from tests.serving.configs import MonitoringConfig
from tests.serving.configs import read

OPTIONS = {"max_batch": 64, "max_characters": 4096, "max_tokens": 256}
TEMPLATES = Path(folders.__file__).with_name("templates")
TEXT = {"serving_default": {"inputs": {"text": {}}}}


@pytest.fixture
def version(tmp_path):
    """A version with the parts that the files depend on."""
    path = tmp_path / "models" / "en_de.v" / "3"
    (path / INFO).parent.mkdir(parents=True)
    (path / INFO).write_text(json.dumps({"options": OPTIONS, "signatures": TEXT}))
    return path


@pytest.fixture
def folder(version, tmp_path):
    write_deployment(version, tmp_path / "deploy")
    return tmp_path / "deploy"


def test_nothing_is_left_open(folder):
    written, templates = (
        {str(file.relative_to(place)) for file in place.rglob("*.*")}
        for place in (folder, TEMPLATES)
    )
    assert written == templates
    for name in written:
        assert "@@" not in (folder / name).read_text()


def test_models_have_labels(folder):
    config = read(ModelServerConfig, folder / "serving" / "models.config")
    [model] = config.model_config_list.config
    assert (model.name, model.base_path) == ("en_de.v", "/models/en_de.v")
    assert list(model.model_version_policy.specific.versions) == [3]
    assert dict(model.version_labels) == {"stable": 3, "canary": 3}


def test_metrics_are_on(folder):
    config = read(MonitoringConfig, folder / "serving" / "monitoring.config")
    assert config.prometheus_config.enable


def test_compose_mounts_what_is_there(folder, version):
    compose = yaml.safe_load((folder / "compose.yaml").read_text())
    assert re.fullmatch("[a-z0-9][a-z0-9_-]*", compose["name"])
    serving, proxy = compose["services"]["serving"], compose["services"]["proxy"]
    for volume in serving["volumes"] + proxy["volumes"]:
        assert (folder / volume["source"]).exists(), volume
    models, settings = serving["volumes"]
    assert (folder / models["source"]).samefile(version.parent)
    assert (
        f"--model_config_file={settings['target']}/models.config"
        in (serving["command"])
    )
    assert proxy["depends_on"]["serving"]["condition"] == "service_healthy"
    # Only the proxy is open to others.
    assert all(port.startswith("127.0.0.1:") for port in serving["ports"])


def test_kubernetes_finds_its_parts(folder):
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    maps = {m["name"]: m["files"] for m in kustomization["configMapGenerator"]}
    assert all((folder / file).is_file() for files in maps.values() for file in files)
    [resources] = kustomization["resources"]
    parts = {p["kind"]: p for p in yaml.safe_load_all((folder / resources).read_text())}
    pod = parts["Deployment"]["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for container in pod["containers"]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)
    for volume in volumes.values():
        if "configMap" in volume:
            assert volume["configMap"]["name"] in maps
    claim = volumes["versions"]["persistentVolumeClaim"]["claimName"]
    assert claim == parts["PersistentVolumeClaim"]["metadata"]["name"]
    ports = {p["name"] for c in pod["containers"] for p in c.get("ports", ())}
    assert {p["targetPort"] for p in parts["Service"]["spec"]["ports"]} == ports
    # A server that is ready has loaded the version and answered the warm-up requests.
    server = pod["containers"][0]
    probe = server["readinessProbe"]["httpGet"]
    assert probe["path"] == "/v1/models/en_de.v/labels/stable/metadata"
    assert f"--rest_api_port={probe['port']}" in server["args"]


def test_the_proxy_lets_through_what_the_graph_reads(folder):
    text = (folder / "proxy" / "nginx.conf").read_text()
    [size] = re.findall(r"client_max_body_size (\d+)m;", text)
    assert int(size) == megabytes(OPTIONS, TEXT) == 3
    ids = {"serving_default": {"inputs": {"source_ids": {}}}}
    assert megabytes(OPTIONS, ids) == 1
    audio = {"serving_default": {"inputs": {"audio": {}}}}
    largest = OPTIONS["max_batch"] * OPTIONS["max_tokens"] * 640 * 12
    assert megabytes(OPTIONS, audio) == 1 + largest // 1_000_000
    assert text.count("{") == text.count("}")


def test_files_that_exist_are_kept(folder, version):
    models = folder / "serving" / "models.config"
    models.write_text("# edited\n")
    (folder / "proxy" / "limits.js").unlink()
    written = write_deployment(version, folder)
    assert [file.name for file in written] == ["limits.js"]
    assert models.read_text() == "# edited\n"


def test_a_name_that_servers_refuse_is_refused(version):
    other = version.parent.with_name("en de")
    shutil.copytree(version.parent, other)
    with pytest.raises(ValueError, match="Received: 'en de'"):
        write_deployment(other / "3", other.parent / "deploy")
