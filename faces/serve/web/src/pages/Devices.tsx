import { useGet } from "../api/hooks";
import type { Device, Worker } from "../api/types";
import { Card, Empty, Failure, Loading } from "../parts/basics";

function Table({ devices }: { devices: Device[] }) {
  return (
    <table className="stack">
      <thead>
        <tr>
          <th>name</th>
          <th>full name</th>
          <th className="right">compute capability</th>
          <th className="right">SMs</th>
          <th className="right">clock</th>
          <th className="right">memory</th>
          <th className="right">bandwidth</th>
        </tr>
      </thead>
      <tbody>
        {devices.map((one, i) => (
          <tr key={`${one.name} ${i}`}>
            <td data-label="name" className="strong">
              {one.name}
            </td>
            <td data-label="full name">{one.full_name}</td>
            <td data-label="capability" className="right">
              {one.cc_major}.{one.cc_minor}
            </td>
            <td data-label="SMs" className="right">
              {one.sms}
            </td>
            <td data-label="clock" className="right">
              {one.clock_ghz ? `${one.clock_ghz.toFixed(2)} GHz` : "–"}
            </td>
            <td data-label="memory" className="right">
              {one.dram_bytes ? `${Math.round(one.dram_bytes / 2 ** 30)} GiB` : "–"}
            </td>
            <td data-label="bandwidth" className="right">
              {one.dram_gbps ? `${Math.round(one.dram_gbps)} GB/s` : "–"}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Devices() {
  const { data, error, reload } = useGet<{ present: Device[]; known: Device[]; why_none?: string }>(
    "/devices",
  );
  const workers = useGet<{ workers: Worker[] }>("/workers", 10);
  return (
    <>
      <h1>GPUs and workers</h1>
      {error && <Failure error={error} retry={reload} />}
      {!data && !error && <Loading what="devices" />}
      {data && (
        <>
          <Card title="GPUs of this machine">
            {data.present.length > 0 ? (
              <Table devices={data.present} />
            ) : (
              <Empty>
                <p>No GPU here: {data.why_none ?? "none was found"}. Times are predicted.</p>
              </Empty>
            )}
          </Card>
          <Card title="Workers">
            {workers.data?.workers.length ? (
              <table className="stack">
                <thead>
                  <tr>
                    <th>worker</th>
                    <th>GPUs</th>
                    <th>works on</th>
                    <th className="right">seen</th>
                  </tr>
                </thead>
                <tbody>
                  {workers.data.workers.map((one) => (
                    <tr key={one.name}>
                      <td data-label="worker" className="strong">
                        {one.name}
                      </td>
                      <td data-label="GPUs">{one.gpus.join(", ") || "none: predicts"}</td>
                      <td data-label="works on">
                        {one.job ? (
                          <a href={`#/jobs/${encodeURIComponent(one.job)}`}>{one.job}</a>
                        ) : (
                          "nothing"
                        )}
                      </td>
                      <td data-label="seen" className="right">
                        {Math.round(one.last_seen_seconds)} s ago
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            ) : (
              <Empty>
                <p>No worker has asked for work during the last minute.</p>
              </Empty>
            )}
          </Card>
          <Card title="GPUs that times can be predicted for">
            <Table devices={data.known} />
          </Card>
        </>
      )}
    </>
  );
}
