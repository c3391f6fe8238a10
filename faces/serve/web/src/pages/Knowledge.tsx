import { useGet } from "../api/hooks";
import { Markdown } from "../lib/markdown";
import { replaceQuery, routeText, type Route } from "../lib/route";
import { Card, Empty, Failure, Loading } from "../parts/basics";

interface Page {
  name: string;
  title: string;
  text?: string;
}

const addressOf = (name: string) => routeText(["knowledge", name]);

function KnowledgePage({ name }: { name: string }) {
  const { data, error, reload } = useGet<Page>(`/knowledge/${encodeURIComponent(name)}`);
  if (error) return <Failure error={error} retry={reload} />;
  if (!data) return <Loading what="the page" />;
  return (
    <>
      <div className="title">
        <h1>{data.title}</h1>
        <a className="button" href="#/knowledge">
          All pages
        </a>
      </div>
      <section className="card" aria-label={data.title}>
        <Markdown text={(data.text ?? "").replace(/^#.*\n/, "")} page={addressOf} />
      </section>
    </>
  );
}

function List({ pages }: { pages: Page[] }) {
  return (
    <ul className="pages">
      {pages.map((one, i) => (
        <li key={`${one.name} ${i}`}>
          <a href={addressOf(one.name)}>{one.title || one.name}</a>
          {one.text && <p className="hint">{one.text.replace(/[#*`]/g, "").slice(0, 220)}…</p>}
        </li>
      ))}
    </ul>
  );
}

function Search({ route }: { route: Route }) {
  const words = route.query.get("q") ?? "";
  const { data, error, reload } = useGet<{ pages: Page[] }>(
    `/knowledge${words ? `?q=${encodeURIComponent(words)}` : ""}`,
  );
  return (
    <>
      <h1>Knowledge</h1>
      <Card
        title={words ? "Best matches" : "The handbook of CUDA optimisation"}
        tools={
          <input
            type="search"
            aria-label="words to look for"
            placeholder="look for words"
            value={words}
            onChange={(e) => replaceQuery(route, { q: e.target.value })}
          />
        }
      >
        {error && <Failure error={error} retry={reload} />}
        {!data && !error && <Loading what="pages" />}
        {data && data.pages.length === 0 && <Empty>No page has these words.</Empty>}
        {data && <List pages={data.pages.filter((one) => one.name !== "README")} />}
      </Card>
      <p className="hint">
        The rules by which ideas for rewriting kernels are ranked cite these pages.
      </p>
    </>
  );
}

export function Knowledge({ route }: { route: Route }) {
  const name = route.parts[1];
  return name ? <KnowledgePage key={name} name={name} /> : <Search route={route} />;
}
