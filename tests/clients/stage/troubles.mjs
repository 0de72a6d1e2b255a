// Whatever goes wrong in a browser without anybody seeing it: errors in the console, what the content security policy stopped,
// requests that failed or went elsewhere, and dialogs.

export class Troubles {
  #found = [];
  #expected = [];

  constructor(base) {
    this.origin = new URL(base).origin;
  }

  watch(context) {
    context.on("console", (line) => line.type() === "error" && this.#note(`console: ${line.text()} (${line.location().url})`));
    context.on("weberror", (fault) => this.#note(`script: ${fault.error().stack}`));
    context.on("dialog", (dialog) => {
      this.#note(`dialog: ${dialog.message()}`);
      return dialog.dismiss();
    });
    context.on("request", (request) => {
      const url = new URL(request.url());
      if (url.origin !== this.origin && url.protocol !== "about:") this.#note(`went elsewhere: ${url}`);
    });
    context.on("requestfailed", (request) => {
      const { errorText } = request.failure();
      // Whoever leaves a page gives up what it still asks for.
      if (errorText !== "net::ERR_ABORTED") this.#note(`failed: ${request.url()}: ${errorText}`);
    });
  }

  /** From here on, what matches is part of the story. */
  expect(pattern) {
    this.#expected.push(pattern);
  }

  #note(trouble) {
    this.#found.push(trouble);
  }

  /** Those that nobody expected, once. */
  take() {
    const found = this.#found.filter((trouble) => !this.#expected.some((pattern) => pattern.test(trouble)));
    this.#found = [];
    this.#expected = [];
    return found;
  }
}
