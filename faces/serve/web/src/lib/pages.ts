/** Rows of a long list, loaded page by page as they come into view. */
export interface Page<Row> {
  rows: Row[];
  total: number;
}

export class PagedRows<Row> {
  total: number | null = null;
  private readonly pages = new Map<number, Row[]>();
  private readonly asked = new Set<number>();

  constructor(
    private readonly load: (offset: number, limit: number) => Promise<Page<Row>>,
    private readonly changed: () => void,
    private readonly failed: (error: unknown) => void = () => {},
    readonly pageSize = 200,
    private readonly most = 50,
  ) {}

  row(index: number): Row | undefined {
    return this.pages.get(Math.floor(index / this.pageSize))?.[index % this.pageSize];
  }

  /** Asks for every page of rows [first, last] that is not there yet. */
  show(first: number, last: number) {
    const to = Math.floor(Math.max(first, last) / this.pageSize);
    for (let page = Math.floor(first / this.pageSize); page <= to; ++page) this.ask(page);
  }

  private ask(page: number) {
    if (this.pages.has(page) || this.asked.has(page)) return;
    this.asked.add(page);
    this.load(page * this.pageSize, this.pageSize).then(
      ({ rows, total }) => {
        this.total = total;
        this.pages.set(page, rows);
        this.asked.delete(page);
        this.dropOld();
        this.changed();
      },
      (error: unknown) => {
        this.asked.delete(page);
        this.failed(error);
      },
    );
  }

  private dropOld() {
    while (this.pages.size > this.most) this.pages.delete(this.pages.keys().next().value as number);
  }
}

/** The rows to draw for a scroll position, with some beyond both ends. */
export function visibleRows(scroll: number, height: number, rowHeight: number, total: number) {
  const beyond = 8;
  const first = Math.max(0, Math.floor(scroll / rowHeight) - beyond);
  const last = Math.min(total - 1, Math.ceil((scroll + height) / rowHeight) + beyond);
  return { first, last };
}
