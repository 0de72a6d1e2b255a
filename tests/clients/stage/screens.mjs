// Every screen of the page, by its name.

/** Where each is; of the lists that are about one thing, the one that the stage names. */
export function screens(stage) {
  const { thread, agent, words, day } = stage.told;
  const inside = {
    now: "",
    threads: "threads",
    conversation: `threads/${thread}`,
    search: `search?words=${words}`,
    agents: "agents",
    agent: `agents/${agent}`,
    contacts: "contacts",
    reservations: "reservations",
    history: "history",
    replay: `replay?day=${day}`,
    talk: "talk",
    write: "write",
  };
  const found = Object.entries(inside).map(([name, path]) => [name, stage.at(path)]);
  return [["projects", `${stage.told.base}/`], ...found];
}
