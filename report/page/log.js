"use strict";
(() => {
  const log = document.getElementById("log"), how = document.getElementById("how");
  const most = 1 << 18, decoder = new TextDecoder();
  let at = Number(log.dataset.at);
  // What hides or moves text is shown as a sign, as everywhere on these pages.
  const shown = (text) => text.replace(/\r\n/g, "\n").replace(/[^\P{C}\n\t]/gu, "\uFFFD");
  const wait = () => new Promise((done) => { setTimeout(done, 1000); });
  const follow = async () => {
    let running = "running" in log.dataset;
    while (running) {
      let read = 0;
      try {
        const from = Math.max(at - 1, 0); // one byte is always there: an empty range would be an error
        const answer = await fetch(log.dataset.href, { headers: { Range: `bytes=${from}-${from + most}` }, cache: "no-store" });
        if (answer.status === 206) {
          const bytes = (await answer.arrayBuffer()).slice(at - from);
          read = bytes.byteLength;
          at += read;
          const end = innerHeight + scrollY >= document.body.scrollHeight - 40;
          log.textContent = (log.textContent + shown(decoder.decode(bytes, { stream: true }))).slice(-most);
          if (end) scrollTo(0, document.body.scrollHeight);
        }
        if (read === 0) running = answer.headers.get("Benchgraph-Attempt") === "running";
        if (!running) how.textContent = "The attempt has ended. A reload says how.";
      } catch {
        how.textContent = "The connection is lost. What follows is as it was before.";
      }
      if (read === 0 && running) await wait();
    }
  };
  if ("running" in log.dataset) scrollTo(0, document.body.scrollHeight);
  follow();
})();
