import type { ReactNode } from "react";

/** Code, strong text and links of one line. Links to other pages of the handbook go to `page`. */
function inline(text: string, page: (name: string) => string): ReactNode[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)\s]+\))/).map((piece, i) => {
    if (piece.startsWith("`")) return <code key={i}>{piece.slice(1, -1)}</code>;
    if (piece.startsWith("**")) return <strong key={i}>{inline(piece.slice(2, -2), page)}</strong>;
    const link = /^\[([^\]]+)\]\(([^)\s]+)\)$/.exec(piece);
    if (!link) return piece;
    const own = /^([a-z0-9-]+)\.md$/.exec(link[2] as string);
    if (own) return <a key={i} href={page(own[1] as string)}>{link[1]}</a>;
    if (/^https:\/\//.test(link[2] as string))
      return <a key={i} href={link[2]} rel="noreferrer">{link[1]}</a>;
    return link[1];
  });
}

/** The Markdown of the handbook: headings, paragraphs, lists and code. Nothing of it is HTML. */
export function Markdown({ text, page }: { text: string; page: (name: string) => string }) {
  const blocks = text.split(/(```[\s\S]*?```)/).flatMap((part) =>
    part.startsWith("```") ? [part] : part.split(/\n\s*\n/),
  );
  return (
    <div className="prose">
      {blocks.map((block, i) => {
        const trimmed = block.trim();
        if (trimmed === "") return null;
        if (trimmed.startsWith("```"))
          return <pre key={i} className="source" tabIndex={0}>{trimmed.replace(/^```.*\n|\n?```$/g, "")}</pre>;
        const heading = /^(#+)\s+(.*)$/.exec(trimmed);
        if (heading) return <h2 key={i}>{inline(heading[2] as string, page)}</h2>;
        if (/^[-*] /.test(trimmed))
          return (
            <ul key={i}>
              {trimmed.split(/\n(?=[-*] )/).map((one, j) => (
                <li key={j}>{inline(one.slice(2).replace(/\n\s*/g, " "), page)}</li>
              ))}
            </ul>
          );
        return <p key={i}>{inline(trimmed.replace(/\n/g, " "), page)}</p>;
      })}
    </div>
  );
}
