import { useState } from "react";
import { useGet } from "../api/hooks";
import type { RunSummary } from "../api/types";
import { agoText, durationText, timeText } from "../lib/format";
import { replaceQuery, routeText, type Route } from "../lib/route";
import { Empty, EvidenceTag, Failure, Loading, Tag } from "../parts/basics";

export function Runs({ route }: { route: Route }) {
  const wanted = route.query.get("q") ?? "";
  const [chosen, setChosen] = useState<string[]>([]);
  const { data, error, reload } = useGet<{ runs: RunSummary[]; total: number }>(
    `/runs?limit=100${wanted ? `&q=${encodeURIComponent(wanted)}` : ""}`,
  );
  const choose = (id: string) =>
    setChosen((old) =>
      old.includes(id) ? old.filter((one) => one !== id) : [...old, id].slice(-2),
    );
  return (
    <>
      <div className="title">
        <h1>Runs</h1>
        <div className="tools">
          <label className="search">
            search{" "}
            <input
              type="search"
              defaultValue={wanted}
              placeholder="id, command, GPU"
              onChange={(e) => replaceQuery(route, { q: e.target.value })}
            />
          </label>
          {chosen.length === 2 ? (
            <a
              className="button primary"
              href={routeText(["compare"], { a: chosen[0] ?? null, b: chosen[1] ?? null })}
            >
              Compare the two
            </a>
          ) : (
            <span className="hint">choose two to compare</span>
          )}
        </div>
      </div>
      {error && <Failure error={error} retry={reload} />}
      {!data && !error && <Loading what="runs" />}
      {data?.runs.length === 0 && (
        <Empty>
          <p>{wanted ? `No run matches “${wanted}”.` : "No run yet."}</p>
        </Empty>
      )}
      {data && data.runs.length > 0 && (
        <div className="card flush">
          <table className="stack">
            <thead>
              <tr>
                <th>
                  <span className="hidden">compare</span>
                </th>
                <th>run</th>
                <th>state</th>
                <th>GPU</th>
                <th className="right">trials</th>
                <th className="right">best</th>
                <th className="right">time spent</th>
              </tr>
            </thead>
            <tbody>
              {data.runs.map((run) => (
                <tr key={run.id}>
                  <td data-label="compare">
                    <input
                      type="checkbox"
                      aria-label={`compare ${run.id}`}
                      checked={chosen.includes(run.id)}
                      onChange={() => choose(run.id)}
                    />
                  </td>
                  <td data-label="run">
                    <a href={routeText(["runs", run.id])}>{run.task || run.id}</a>
                    <small title={run.command}>
                      {run.id}, {agoText(run.created)}
                    </small>
                  </td>
                  <td data-label="state">
                    <Tag text={run.status} />
                  </td>
                  <td data-label="GPU">
                    {run.device} <EvidenceTag evidence={run.evidence} />
                  </td>
                  <td data-label="trials" className="right">
                    {run.trials.toLocaleString("en")}
                  </td>
                  <td data-label="best" className="right">
                    {timeText(run.best_ns)}
                  </td>
                  <td data-label="time spent" className="right">
                    {durationText(run.seconds)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
