// A web site that wants what the human may do: it serves whatever page it is told to, on a port of its own.
import { createServer } from "node:http";
import { once } from "node:events";

export class Hostile {
  static async open() {
    const hostile = new Hostile();
    hostile.server = createServer((request, response) => {
      response.setHeader("content-type", "text/html; charset=utf-8");
      response.end(hostile.html);
    });
    await once(hostile.server.listen(0, "127.0.0.1"), "listening");
    return hostile;
  }

  /** Opens a page of it under this name. To the browser, another port is the same site, and another name another one. */
  async show(page, host, html) {
    this.html = `<!doctype html><meta charset="utf-8"><title>free prizes</title>${html}`;
    await page.goto(`http://${host}:${this.server.address().port}/`);
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
