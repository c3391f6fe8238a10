import { useState, type FormEvent } from "react";
import { ApiError, send, upload } from "../api/client";
import { useGet } from "../api/hooks";
import type { Device, Job, JobRequest } from "../api/types";
import { parseBudget, parseShapes } from "../lib/format";
import { routeText } from "../lib/route";
import { Card, Failure } from "../parts/basics";

interface Form {
  kind: "operator" | "source";
  operator: string;
  shapes: string;
  dtype: string;
  file: File | null;
  kernel: string;
  gpu: string;
  budget: string;
  seed: string;
}

/** The request of the form, or what is wrong with it by field. */
function requestOf(form: Form): {
  request?: JobRequest;
  wrong: Partial<Record<keyof Form, string>>;
} {
  const wrong: Partial<Record<keyof Form, string>> = {};
  const shapes = parseShapes(form.shapes);
  const budget = parseBudget(form.budget);
  if (!budget) wrong.budget = "write 60 (trials), 5m, or both: 200,5m";
  const request: JobRequest = {
    kind: form.kind,
    target_gpu: form.gpu,
    budget: budget ?? {},
    seed: Number(form.seed) || 1,
  };
  if (form.kind === "operator") {
    if (!form.operator.trim()) wrong.operator = "name an operator";
    if (!shapes)
      wrong.shapes = "write sizes with commas: 8192,4096; several shapes with blanks between";
    Object.assign(request, { operator: form.operator.trim(), shapes, dtype: form.dtype });
  } else {
    if (!form.file) wrong.file = "choose a .cu file";
    if (form.kernel.trim()) request.kernel = form.kernel.trim();
  }
  return { request: Object.keys(wrong).length === 0 ? request : undefined, wrong };
}

function Field({
  id,
  label,
  error,
  hint,
  children,
}: {
  id: string;
  label: string;
  error?: string | undefined;
  hint?: string;
  children: React.ReactNode;
}) {
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children}
      {error ? (
        <p className="error" id={`${id}-note`}>
          {error}
        </p>
      ) : (
        hint && (
          <p className="hint" id={`${id}-note`}>
            {hint}
          </p>
        )
      )}
    </div>
  );
}

function GpuChoice({ form, set }: { form: Form; set: (change: Partial<Form>) => void }) {
  const { data } = useGet<{ present: Device[]; known: Device[] }>("/devices");
  const present = new Set(data?.present.map((one) => one.name));
  return (
    <Field
      id="gpu"
      label="GPU"
      hint={
        present.has(form.gpu)
          ? "This GPU is present: times are measured."
          : "Times are predicted unless a worker has this GPU."
      }
    >
      <select id="gpu" value={form.gpu} onChange={(e) => set({ gpu: e.target.value })}>
        {present.size > 0 && <option value="auto">the GPU of the worker</option>}
        {(data?.known ?? [{ name: form.gpu, full_name: "" } as Device]).map((one) => (
          <option key={one.name} value={one.name}>
            {one.name}
            {present.has(one.name) ? " (present)" : ""}
          </option>
        ))}
      </select>
    </Field>
  );
}

function OperatorFields({
  form,
  set,
  wrong,
}: {
  form: Form;
  set: (change: Partial<Form>) => void;
  wrong: Partial<Record<keyof Form, string>>;
}) {
  const { data } = useGet<{ operators: { name: string; summary: string }[] }>("/operators");
  const summary = data?.operators.find((one) => one.name === form.operator)?.summary;
  return (
    <>
      <Field
        id="operator"
        label="Operator"
        error={wrong.operator}
        hint={summary ?? `${data?.operators.length ?? "…"} operators; begin to type`}
      >
        <input
          id="operator"
          list="operators"
          value={form.operator}
          autoComplete="off"
          spellCheck={false}
          onChange={(e) => set({ operator: e.target.value })}
          aria-invalid={!!wrong.operator}
          aria-describedby="operator-note"
        />
        <datalist id="operators">
          {data?.operators.map((one) => (
            <option key={one.name} value={one.name}>
              {one.summary}
            </option>
          ))}
        </datalist>
      </Field>
      <Field
        id="shapes"
        label="Shapes"
        error={wrong.shapes}
        hint="as the operator asks for them: 8192,4096"
      >
        <input
          id="shapes"
          value={form.shapes}
          spellCheck={false}
          onChange={(e) => set({ shapes: e.target.value })}
          aria-invalid={!!wrong.shapes}
          aria-describedby="shapes-note"
        />
      </Field>
      <Field id="dtype" label="Type">
        <select id="dtype" value={form.dtype} onChange={(e) => set({ dtype: e.target.value })}>
          {["float32", "float16", "bfloat16", "float64"].map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </Field>
    </>
  );
}

function SourceFields({
  form,
  set,
  wrong,
}: {
  form: Form;
  set: (change: Partial<Form>) => void;
  wrong: Partial<Record<keyof Form, string>>;
}) {
  return (
    <>
      <Field
        id="file"
        label="File"
        error={wrong.file}
        hint="a .cu with the kernel and the host code that launches it; it is read, never run"
      >
        <input
          id="file"
          type="file"
          accept=".cu"
          onChange={(e) => set({ file: e.target.files?.[0] ?? null })}
          aria-invalid={!!wrong.file}
          aria-describedby="file-note"
        />
      </Field>
      <Field id="kernel" label="Kernel" hint="only if the file has several">
        <input
          id="kernel"
          value={form.kernel}
          spellCheck={false}
          onChange={(e) => set({ kernel: e.target.value })}
          aria-describedby="kernel-note"
        />
      </Field>
    </>
  );
}

export function Submit() {
  const [form, setForm] = useState<Form>({
    kind: "operator",
    operator: "softmax",
    shapes: "64,512",
    dtype: "float32",
    file: null,
    kernel: "",
    gpu: "A100",
    budget: "20",
    seed: "1",
  });
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const set = (change: Partial<Form>) => setForm((old) => ({ ...old, ...change }));
  const { request, wrong } = requestOf(form);
  const shown = tried ? wrong : {};
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (!request) return;
    setBusy(true);
    setError(null);
    try {
      if (form.kind === "source" && form.file) request.upload = (await upload(form.file)).id;
      const job = await send<Job>("POST", "/jobs", request);
      window.location.hash = routeText(["jobs", job.id]);
    } catch (failure) {
      if (failure instanceof ApiError) setError(failure);
      setBusy(false);
    }
  };
  return (
    <>
      <h1>Submit a job</h1>
      <Card title="What to tune">
        <form onSubmit={submit} noValidate>
          <fieldset className="choice">
            <legend>Kernel</legend>
            {(
              [
                ["operator", "an operator"],
                ["source", "my own .cu file"],
              ] as const
            ).map(([kind, text]) => (
              <label key={kind}>
                <input
                  type="radio"
                  name="kind"
                  checked={form.kind === kind}
                  onChange={() => set({ kind })}
                />{" "}
                {text}
              </label>
            ))}
          </fieldset>
          <div className="fields">
            {form.kind === "operator" ? (
              <OperatorFields form={form} set={set} wrong={shown} />
            ) : (
              <SourceFields form={form} set={set} wrong={shown} />
            )}
            <GpuChoice form={form} set={set} />
            <Field
              id="budget"
              label="Budget"
              error={shown.budget}
              hint="60 (trials), 5m, or both: 200,5m"
            >
              <input
                id="budget"
                value={form.budget}
                onChange={(e) => set({ budget: e.target.value })}
                aria-invalid={!!shown.budget}
                aria-describedby="budget-note"
              />
            </Field>
            <Field id="seed" label="Seed" hint="equal seeds give equal predicted runs">
              <input
                id="seed"
                inputMode="numeric"
                value={form.seed}
                onChange={(e) => set({ seed: e.target.value })}
                aria-describedby="seed-note"
              />
            </Field>
          </div>
          {error && <Failure error={error} />}
          <button type="submit" className="primary" disabled={busy}>
            {busy ? "Submitting…" : "Submit"}
          </button>
        </form>
      </Card>
    </>
  );
}
