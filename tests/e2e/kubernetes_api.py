"""A stand-in for the API of Kubernetes: it holds objects to the published schemas, and runs the pods of Jobs as processes.

KINDS has the fields of the kinds that `assay launch` and the chart use, as the API publishes them (kubernetes/kubernetes,
api/openapi-spec; taken from release 1.22, whose fields later ones keep, and those of the chart alone from kubernetes/api,
release 0.32): `*` is required, `-` is a type that is not written
down here and so refused. No cluster was asked: what a real one adds (quotas, admission, scheduling) is not here.
"""
import http.server
import json
import os
import re
import signal
import subprocess
import threading

KINDS_TEXT = """
Job apiVersion:str kind:str metadata:ObjectMeta spec:JobSpec status:-
JobSpec activeDeadlineSeconds:int backoffLimit:int completionMode:str completions:int manualSelector:bool
    parallelism:int selector:LabelSelector suspend:bool *template:PodTemplateSpec ttlSecondsAfterFinished:int
PodTemplateSpec metadata:ObjectMeta spec:PodSpec
PodSpec activeDeadlineSeconds:int affinity:- automountServiceAccountToken:bool *containers:[Container] dnsConfig:-
    dnsPolicy:str enableServiceLinks:bool ephemeralContainers:[-] hostAliases:[-] hostIPC:bool hostNetwork:bool
    hostPID:bool hostname:str imagePullSecrets:[LocalObjectReference] initContainers:[Container] nodeName:str
    nodeSelector:{str} overhead:{str} preemptionPolicy:str priority:int priorityClassName:str readinessGates:[-]
    restartPolicy:str runtimeClassName:str schedulerName:str securityContext:PodSecurityContext serviceAccount:str
    serviceAccountName:str setHostnameAsFQDN:bool shareProcessNamespace:bool subdomain:str
    terminationGracePeriodSeconds:int tolerations:[Toleration] topologySpreadConstraints:[-] volumes:[Volume]
Container args:[str] command:[str] env:[EnvVar] envFrom:[-] image:str imagePullPolicy:str lifecycle:- livenessProbe:Probe
    *name:str ports:[ContainerPort] readinessProbe:Probe resources:ResourceRequirements
    securityContext:SecurityContext startupProbe:Probe
    stdin:bool stdinOnce:bool terminationMessagePath:str terminationMessagePolicy:str tty:bool volumeDevices:[-]
    volumeMounts:[VolumeMount] workingDir:str
EnvVar *name:str value:str valueFrom:EnvVarSource
EnvVarSource configMapKeyRef:- fieldRef:ObjectFieldSelector resourceFieldRef:- secretKeyRef:SecretKeySelector
ObjectFieldSelector apiVersion:str *fieldPath:str
ResourceRequirements limits:{str} requests:{str}
VolumeMount *mountPath:str mountPropagation:str *name:str readOnly:bool subPath:str subPathExpr:str
Volume awsElasticBlockStore:- azureDisk:- azureFile:- cephfs:- cinder:- configMap:- csi:- downwardAPI:-
    emptyDir:EmptyDirVolumeSource ephemeral:- fc:- flexVolume:- flocker:- gcePersistentDisk:- gitRepo:- glusterfs:-
    hostPath:- iscsi:- *name:str nfs:- persistentVolumeClaim:- photonPersistentDisk:- portworxVolume:- projected:-
    quobyte:- rbd:- scaleIO:- secret:SecretVolumeSource storageos:- vsphereVolume:-
SecretVolumeSource defaultMode:int items:[KeyToPath] optional:bool secretName:str
EmptyDirVolumeSource medium:str sizeLimit:str
SecurityContext allowPrivilegeEscalation:bool capabilities:Capabilities privileged:bool procMount:str
    readOnlyRootFilesystem:bool runAsGroup:int runAsNonRoot:bool runAsUser:int seLinuxOptions:-
    seccompProfile:SeccompProfile windowsOptions:-
PodSecurityContext fsGroup:int fsGroupChangePolicy:str runAsGroup:int runAsNonRoot:bool runAsUser:int seLinuxOptions:-
    seccompProfile:SeccompProfile supplementalGroups:[int] sysctls:[-] windowsOptions:-
SeccompProfile localhostProfile:str *type:str
Capabilities add:[str] drop:[str]
ObjectMeta annotations:{str} clusterName:str creationTimestamp:- deletionGracePeriodSeconds:int deletionTimestamp:-
    finalizers:[str] generateName:str generation:int labels:{str} managedFields:[-] name:str namespace:str
    ownerReferences:[-] resourceVersion:str selfLink:str uid:str
LabelSelector matchExpressions:[-] matchLabels:{str}
Secret apiVersion:str data:{str} immutable:bool kind:str metadata:ObjectMeta stringData:{str} type:str
LocalObjectReference name:str
NetworkPolicy apiVersion:str kind:str metadata:ObjectMeta spec:NetworkPolicySpec
NetworkPolicySpec egress:[-] ingress:[NetworkPolicyIngressRule] *podSelector:LabelSelector policyTypes:[str]
NetworkPolicyIngressRule from:[NetworkPolicyPeer] ports:[NetworkPolicyPort]
NetworkPolicyPeer ipBlock:- namespaceSelector:LabelSelector podSelector:LabelSelector
NetworkPolicyPort endPort:int port:int|str protocol:str
ContainerPort *containerPort:int hostIP:str hostPort:int name:str protocol:str
Probe exec:- failureThreshold:int grpc:- httpGet:HTTPGetAction initialDelaySeconds:int periodSeconds:int
    successThreshold:int tcpSocket:- terminationGracePeriodSeconds:int timeoutSeconds:int
HTTPGetAction host:str httpHeaders:[HTTPHeader] path:str *port:int|str scheme:str
HTTPHeader *name:str *value:str
SecretKeySelector *key:str name:str optional:bool
KeyToPath *key:str mode:int *path:str
Toleration effect:str key:str operator:str tolerationSeconds:int value:str
Deployment apiVersion:str kind:str metadata:ObjectMeta spec:DeploymentSpec status:-
DeploymentSpec minReadySeconds:int paused:bool progressDeadlineSeconds:int replicas:int revisionHistoryLimit:int
    *selector:LabelSelector strategy:- *template:PodTemplateSpec
Service apiVersion:str kind:str metadata:ObjectMeta spec:ServiceSpec status:-
ServiceSpec allocateLoadBalancerNodePorts:bool clusterIP:str clusterIPs:[str] externalIPs:[str] externalName:str
    externalTrafficPolicy:str healthCheckNodePort:int internalTrafficPolicy:str ipFamilies:[str] ipFamilyPolicy:str
    loadBalancerClass:str loadBalancerIP:str loadBalancerSourceRanges:[str] ports:[ServicePort]
    publishNotReadyAddresses:bool selector:{str} sessionAffinity:str sessionAffinityConfig:- trafficDistribution:str type:str
ServicePort appProtocol:str name:str nodePort:int *port:int protocol:str targetPort:int|str
ServiceAccount apiVersion:str automountServiceAccountToken:bool imagePullSecrets:[LocalObjectReference] kind:str
    metadata:ObjectMeta secrets:[-]
PodDisruptionBudget apiVersion:str kind:str metadata:ObjectMeta spec:PodDisruptionBudgetSpec status:-
PodDisruptionBudgetSpec maxUnavailable:int|str minAvailable:int|str selector:LabelSelector
    unhealthyPodEvictionPolicy:str
"""


def read_kinds(text):
    kinds = {}
    for line in re.sub(r"\n    ", " ", text.strip()).split("\n"):
        kind, *fields = line.split()
        kinds[kind] = {f.lstrip("*").partition(":")[0]: (f.partition(":")[2], f.startswith("*")) for f in fields}
    return kinds


KINDS = read_kinds(KINDS_TEXT)
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")  # DNS-1123 label
LABEL_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?")
RESOURCES = {"jobs": ("batch/v1", "Job"), "secrets": ("v1", "Secret"), "networkpolicies": ("networking.k8s.io/v1", "NetworkPolicy"),
             "deployments": ("apps/v1", "Deployment"), "services": ("v1", "Service"), "serviceaccounts": ("v1", "ServiceAccount"),
             "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget")}


class Refused(Exception):
    def __init__(self, code, reason, message):
        super().__init__(message)
        self.code, self.reason = code, reason


def invalid(at, what):
    raise Refused(422, "Invalid", f"{at}: {what}")


def check(value, kind, at):
    """The value is of the kind, with all it holds."""
    plain = {"str": str, "int": int, "bool": bool, "int|str": (int, str)}
    if kind in plain:
        if not isinstance(value, plain[kind]) or (kind != "bool" and isinstance(value, bool)):
            invalid(at, f"expected {kind}, got {value!r}")
    elif kind[0] == "[":
        if not isinstance(value, list):
            invalid(at, "expected a list")
        for i, item in enumerate(value):
            check(item, kind[1:-1], f"{at}[{i}]")
    elif kind[0] == "{":
        if not isinstance(value, dict):
            invalid(at, "expected an object")
        for key, item in value.items():
            check(item, kind[1:-1], f"{at}.{key}")
    elif kind == "-":
        invalid(at, "this type is not written down here")
    else:
        check_object(value, KINDS[kind], at)


def check_object(value, fields, at):
    if not isinstance(value, dict):
        invalid(at, "expected an object")
    for key, item in value.items():
        if key not in fields:
            raise Refused(400, "BadRequest", f'unknown field "{at}.{key}"')
        check(item, fields[key][0], f"{at}.{key}")
    for key, (_, required) in fields.items():
        if required and key not in value:
            invalid(f"{at}.{key}", "Required value")


def check_meta(meta, at):
    if not NAME.fullmatch(meta.get("name", "")):
        invalid(f"{at}.name", f"not a name: {meta.get('name')!r}")
    for key, value in meta.get("labels", {}).items():
        if not LABEL_KEY.fullmatch(key) or not LABEL_VALUE.fullmatch(value):
            invalid(f"{at}.labels", f"not a label: {key}={value}")


def check_pod(pod, at, restarts):
    """What the API checks beyond the types. restarts: the policies that are allowed."""
    if pod.get("restartPolicy", "Always") not in restarts:
        invalid(f"{at}.restartPolicy", f"expected one of {restarts}")
    volumes = {v["name"] for v in pod.get("volumes", [])}
    for c in pod["containers"]:
        if not c.get("image"):
            invalid(f"{at}.containers", "no image")
        for m in c.get("volumeMounts", []):
            if m["name"] not in volumes:
                invalid(f"{at}.containers", f"no volume {m['name']}")
        for which in c.get("resources", {}).values():
            for name, value in which.items():
                if not QUANTITY.fullmatch(value):
                    invalid(f"{at}.resources.{name}", f"no quantity: {value}")


def check_whole(thing, resource):
    version, kind = RESOURCES[resource]
    if thing.get("apiVersion") != version or thing.get("kind") != kind:
        raise Refused(400, "BadRequest", f"expected {version} {kind}")
    check(thing, kind, kind)
    check_meta(thing["metadata"], "metadata")
    if resource == "jobs":
        spec = thing["spec"]
        if spec.get("completionMode") == "Indexed" and not spec.get("completions"):
            invalid("spec.completions", "required with Indexed")
        check_pod(spec["template"]["spec"], "spec.template.spec", ("Never", "OnFailure"))
    elif resource == "deployments":
        labels = thing["spec"]["template"].get("metadata", {}).get("labels", {})
        if not thing["spec"]["selector"]["matchLabels"].items() <= labels.items():
            invalid("spec.selector", "it does not match the labels of the template")
        check_pod(thing["spec"]["template"]["spec"], "spec.template.spec", ("Always",))


class Pod:
    """A container as a process of this machine: its mounts are folders, $(NAME) in its arguments is replaced."""

    def __init__(self, cluster, job, index):
        spec = job["spec"]["template"]["spec"]
        c = spec["containers"][0]
        self.name = f"{job['metadata']['name']}-{index}-{os.urandom(3).hex()}"
        self.folder = os.path.join(cluster.folder, self.name)
        os.makedirs(self.folder, mode=0o700)
        paths = {m["mountPath"]: os.path.join(self.folder, m["name"]) for m in c["volumeMounts"]}
        for v in spec["volumes"]:
            os.makedirs(os.path.join(self.folder, v["name"]), mode=0o700, exist_ok=True)
            if "secret" in v:
                self.write_secret(cluster, job["metadata"]["namespace"], v)

        def local(text):
            for mount, path in paths.items():
                text = text.replace(mount, path) if text.startswith(mount) else text
            return text
        fields = {"metadata.name": self.name, "metadata.namespace": job["metadata"]["namespace"]}
        env = {"PATH": os.environ["PATH"], "HOME": self.folder, "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
        for e in c["env"]:
            env[e["name"]] = local(e["value"]) if "value" in e else fields[e["valueFrom"]["fieldRef"]["fieldPath"]]
        args = [re.sub(r"\$\((\w+)\)", lambda m: env[m.group(1)], local(a)) for a in c.get("args", [])]
        log = open(os.path.join(cluster.folder, self.name + ".log"), "ab")
        self.process = subprocess.Popen([*c.get("command", [cluster.entrypoint]), *args], env=env, cwd=self.folder, stdout=log,
                                        stderr=log, stdin=subprocess.DEVNULL)

    def write_secret(self, cluster, namespace, volume):
        secret = cluster.objects.get(("secrets", namespace, volume["secret"]["secretName"]))
        for key, value in (secret or {}).get("stringData", {}).items():
            path = os.path.join(self.folder, volume["name"], key)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
                f.write(value)


class Cluster:
    """`with Cluster(folder, entrypoint) as c:`; c.url is its address. entrypoint: the program of the image."""

    def __init__(self, folder, entrypoint):
        self.folder, self.entrypoint = folder, entrypoint
        self.objects, self.pods, self.lock = {}, {}, threading.RLock()
        self.quota, self.is_away, self.requests = None, False, []
        self.room = None  # pods that it places; those beyond wait for place_all()

    def __enter__(self):
        cluster = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.chunks() if self.headers.get("Transfer-Encoding") else self.rfile.read(int(self.headers.get("Content-Length") or 0))
                code, thing = cluster.handle(self.command, self.path, body)
                text = json.dumps(thing).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def chunks(self):
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        for key in list(self.pods):
            self.end(key)

    def handle(self, method, path, body):
        with self.lock:
            self.requests.append((method, path))
            try:
                if self.is_away:
                    raise Refused(503, "ServiceUnavailable", "the server is currently unable to handle the request")
                return self.route(method, path, body)
            except Refused as e:
                return e.code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": str(e), "reason": e.reason,
                                "code": e.code}

    def route(self, method, path, body):
        if path.startswith("/version"):
            return 200, {"major": "1", "minor": "32", "gitVersion": "v1.32.4"}
        m = re.fullmatch(r"/(?:api|apis)/[\w./]*?namespaces/([a-z0-9-]+)/(jobs|secrets|networkpolicies)(?:/([a-z0-9-]+))?(?:\?(.*))?", path)
        if not m:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        namespace, resource, name, query = m.groups()
        key = (resource, namespace, name)
        if method == "POST":
            return 201, self.create(resource, namespace, json.loads(body))
        if method == "PUT":
            thing = json.loads(body)
            check_whole(thing, resource)
            self.objects[key] = thing
            return 200, thing
        if method == "GET":
            return 200, {"kind": "List", "items": [self.show(k, o) for k, o in self.objects.items()
                                                   if k[:2] == (resource, namespace) and self.selected(o, query or "")]}
        if key not in self.objects:
            raise Refused(404, "NotFound", f'{resource} "{name}" not found')
        self.end(key)
        return 200, {"kind": "Status", "status": "Success", "message": query or ""}

    def create(self, resource, namespace, thing):
        check_whole(thing, resource)
        name = thing["metadata"]["name"]
        key = (resource, namespace, name)
        if thing["metadata"].get("namespace") != namespace:
            raise Refused(400, "BadRequest", "the namespace of the object does not match the namespace of the request")
        if key in self.objects:
            raise Refused(409, "AlreadyExists", f'{resource} "{name}" already exists')
        if resource == "jobs" and self.quota is not None and len(self.pods) >= self.quota:
            raise Refused(403, "Forbidden", f'jobs "{name}" is forbidden: exceeded quota: count/jobs.batch={self.quota}')
        self.objects[key] = thing
        if resource == "jobs":
            placed = sum(len(p) for p in self.pods.values())
            most = thing["spec"].get("parallelism", 1)
            self.pods[key] = [Pod(self, thing, i) for i in range(most if self.room is None else min(most, self.room - placed))]
        return thing

    def place_all(self):
        with self.lock:
            self.room = None
            for key, pods in self.pods.items():
                pods += [Pod(self, self.objects[key], i) for i in range(len(pods), self.objects[key]["spec"].get("parallelism", 1))]

    def selected(self, thing, query):
        labels = thing["metadata"].get("labels", {})
        m = re.search(r"labelSelector=([^&]*)", query)
        wanted = m.group(1).replace("%2F", "/").replace("%3D", "=").replace("%2C", ",") if m else ""
        return all(labels.get(k) == v for k, _, v in (part.partition("=") for part in filter(None, wanted.split(","))))

    def show(self, key, thing):
        pods = self.pods.get(key, [])
        codes = [p.process.poll() for p in pods]
        waits = thing["spec"].get("parallelism", 1) - len(pods) if key[0] == "jobs" else 0
        status = {"ready": codes.count(None), "active": codes.count(None) + waits}
        if pods and not waits and None not in codes:
            status["conditions"] = [{"type": "Failed" if any(codes) else "Complete", "status": "True"}]
        return {**thing, "status": status}

    def end(self, key):
        for p in self.pods.pop(key, []):
            p.process.send_signal(signal.SIGTERM)
            p.process.wait(60)
        self.objects.pop(key, None)
