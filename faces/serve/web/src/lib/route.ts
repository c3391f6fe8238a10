import { useEffect, useState } from "react";

/** A place in the page: "#/runs/ID?x=tile" has the parts ["runs", "ID"] and the query {x: "tile"}. */
export interface Route {
  parts: string[];
  query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path
    .split("/")
    .filter((part) => part !== "")
    .map(decodeURIComponent);
  return { parts, query: new URLSearchParams(query) };
}

export function routeText(parts: string[], query: Record<string, string | null> = {}): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => !!pair[1]);
  const text = new URLSearchParams(given).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function useRoute(): Route {
  const [hash, setHash] = useState(window.location.hash);
  useEffect(() => {
    const changed = () => setHash(window.location.hash);
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return parseRoute(hash);
}

/** Changes the query of the present place without a new entry in the history. */
export function replaceQuery(route: Route, changes: Record<string, string | null>) {
  const query: Record<string, string | null> = Object.fromEntries(route.query);
  window.history.replaceState(null, "", routeText(route.parts, { ...query, ...changes }));
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}
