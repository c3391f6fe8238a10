import { useGet } from "../api/hooks";
import type { Parameter, Trial } from "../api/types";
import { routeText } from "../lib/route";
import { Failure, Loading, Tag } from "./basics";

function numberText(value: unknown): string {
  if (typeof value !== "number")
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  return Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(4);
}

export function Facts({
  title,
  facts,
}: {
  title: string;
  facts: Record<string, unknown> | null | undefined;
}) {
  if (!facts) return null;
  const shown = Object.entries(facts).filter(
    ([, value]) => value !== null && value !== "" && typeof value !== "object",
  );
  return (
    <>
      <h3>{title}</h3>
      <dl className="facts">
        {shown.map(([name, value]) => (
          <div key={name}>
            <dt>{title === "Configuration" ? name : name.replaceAll("_", " ")}</dt>
            <dd>{numberText(value)}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

export function Checks({ trial }: { trial: Trial }) {
  const checks = trial.verdict.checks ?? [];
  if (checks.length === 0) return null;
  return (
    <>
      <h3>{checks.length} checks</h3>
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th>check</th>
              <th>inputs</th>
              <th>size</th>
              <th className="right">error</th>
              <th className="right">bound</th>
            </tr>
          </thead>
          <tbody>
            {checks.map((one, i) => (
              <tr key={i} className={one.passed ? "" : "bad"} title={one.detail}>
                <td>
                  {one.passed ? "✓" : "✗"} {one.check}
                </td>
                <td>{one.family}</td>
                <td>
                  {typeof one.dims === "string"
                    ? one.dims
                    : Object.entries(one.dims ?? {})
                        .map(([k, v]) => `${k}=${v}`)
                        .join(" ")}
                </td>
                <td className="right">{one.error.toExponential(1)}</td>
                <td className="right">{one.bound.toExponential(1)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** The trial's values, which the store keeps in the order of the parameters. */
export function named(trial: Trial, parameters: Parameter[]): Record<string, unknown> | null {
  if (!trial.configuration) return null;
  const pairs = parameters.map((one, i) => [one.name, String(trial.configuration?.[i] ?? "")]);
  return Object.fromEntries(pairs);
}

/** One candidate: verdict with every check, time, and what the compiler made of it. */
export function TrialDetail({
  run,
  number,
  parameters,
  close,
}: {
  run: string;
  number: number;
  parameters: Parameter[];
  close: () => void;
}) {
  const { data, error, reload } = useGet<Trial>(
    `/runs/${encodeURIComponent(run)}/trials/${number}`,
  );
  return (
    <aside className="card detail" aria-label={`trial ${number}`}>
      <header>
        <h2>
          <a href={routeText(["runs", run, "trials", String(number)])}>Trial {number}</a>
        </h2>
        <button type="button" className="plain" onClick={close} aria-label="close trial">
          ✕
        </button>
      </header>
      {error && <Failure error={error} retry={reload} />}
      {!data && !error && <Loading what={`trial ${number}`} />}
      {data && (
        <>
          <p>
            <Tag text={data.verdict.kind} /> {data.verdict.reason || "Every check passed."}
          </p>
          {data.note && <p className="hint">{data.note}</p>}
          <Facts title="Configuration" facts={named(data, parameters)} />
          <Facts title="Measured" facts={data.measurement} />
          <Facts title="Predicted" facts={data.estimate} />
          {data.resources?.map((one, i) => (
            <Facts
              key={i}
              title={String(one.entry ?? "kernel")}
              facts={{ ...one, entry: null, mangled: null }}
            />
          ))}
          <Checks trial={data} />
          <p>
            <a className="button" href={routeText(["runs", run, "trials", String(number)])}>
              Time, roofline and source
            </a>
          </p>
        </>
      )}
    </aside>
  );
}
