import { lazy, Suspense, useEffect, useState } from "react";
import { useGet } from "./api/hooks";
import type { Status } from "./api/types";
import { useRoute, type Route } from "./lib/route";
import { Empty, Loading } from "./parts/basics";
import { Admin } from "./pages/Admin";
import { Devices } from "./pages/Devices";
import { Job } from "./pages/Job";
import { Jobs } from "./pages/Jobs";
import { Knowledge } from "./pages/Knowledge";
import { Login } from "./pages/Login";
import { Runs } from "./pages/Runs";
import { Submit } from "./pages/Submit";

// The pages with charts of ECharts load it when they are opened.
const Candidate = lazy(() => import("./pages/Candidate"));
const Compare = lazy(() => import("./pages/Compare"));
const Run = lazy(() => import("./pages/Run"));

const places = [
  ["jobs", "Jobs"],
  ["runs", "Runs"],
  ["compare", "Compare"],
  ["devices", "GPUs"],
  ["knowledge", "Knowledge"],
  ["admin", "Admin"],
  ["submit", "Submit"],
] as const;

function Page({ route }: { route: Route }) {
  const [place = "jobs", id, part, number] = route.parts;
  if (place === "jobs") return id ? <Job key={id} id={id} /> : <Jobs route={route} />;
  if (place === "runs" && id && part === "trials" && number)
    return <Candidate key={`${id} ${number}`} id={id} number={Number(number)} />;
  if (place === "runs") return id ? <Run key={id} id={id} route={route} /> : <Runs route={route} />;
  if (place === "compare") return <Compare route={route} />;
  if (place === "devices") return <Devices />;
  if (place === "knowledge") return <Knowledge route={route} />;
  if (place === "admin") return <Admin />;
  if (place === "submit") return <Submit />;
  return (
    <Empty>
      <h1>There is no such page</h1>
      <p>
        <a href="#/jobs">Go to the jobs</a>
      </p>
    </Empty>
  );
}

function ThemeButton() {
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? "auto");
  useEffect(() => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
    window.dispatchEvent(new Event("themechange"));
  }, [theme]);
  const next = { auto: "dark", dark: "light", light: "auto" }[theme] ?? "auto";
  return (
    <button
      type="button"
      className="plain"
      onClick={() => setTheme(next)}
      aria-label={`colours: ${theme}; change to ${next}`}
    >
      {{ auto: "◐", dark: "☾", light: "☀" }[theme]}
    </button>
  );
}

export function App() {
  const route = useRoute();
  const { data: status, error, reload } = useGet<Status>("/status", 10);
  const place = route.parts[0] ?? "jobs";
  useEffect(() => {
    document.title = `${[...route.parts].reverse().join(" · ") || "jobs"} – atunner`;
  }, [route]);
  return (
    <>
      <a
        className="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the page
      </a>
      <header className="top">
        <a className="brand" href="#/jobs">
          <img src="./icon.svg" alt="" width="24" height="24" />
          atunner
        </a>
        <nav aria-label="pages">
          {places.map(([name, title]) => (
            <a key={name} href={`#/${name}`} aria-current={place === name ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <span className="about" role="status">
          {error
            ? "not connected"
            : status
              ? `${status.jobs.running ?? 0} running, ${status.jobs.queued ?? 0} queued`
              : ""}
        </span>
        <ThemeButton />
      </header>
      <main id="main" tabIndex={-1}>
        {error?.status === 401 ? (
          <Login done={reload} />
        ) : (
          <Suspense fallback={<Loading what="the page" />}>
            <Page route={route} />
          </Suspense>
        )}
      </main>
    </>
  );
}
