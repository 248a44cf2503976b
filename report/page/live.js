"use strict";
(() => {
  const sent = new WeakMap(); // what the server sent for an element, before a script changed it
  const list = (element) => element.querySelector(":scope > [data-list]");
  const remember = (container) => {
    for (const element of container.children) {
      sent.set(element, element.outerHTML);
      if (list(element)) remember(list(element));
    }
  };
  const replace = (old, element) => {
    const folds = [...old.querySelectorAll("details")].map((fold) => fold.open);
    const active = document.activeElement, kind = active.localName + (active.localName === "input" ? `[type=${active.type}]` : "");
    const focus = old.contains(active) ? [...old.querySelectorAll(kind)].indexOf(active) : -1;
    const caret = active.selectionStart;
    if (old instanceof HTMLDetailsElement) element.open = old.open;
    old.replaceWith(element);
    [...element.querySelectorAll("details")].forEach((fold, i) => { fold.open ||= folds[i] === true; });
    document.dispatchEvent(new CustomEvent("replaced", { detail: element }));
    const target = focus < 0 ? undefined : element.querySelectorAll(kind)[focus];
    target?.focus({ preventScroll: true });
    if (typeof caret === "number") target?.setSelectionRange?.(caret, caret);
  };
  const update = (have, want) => {
    const old = new Map([...have.children].map((element) => [element.id, element]));
    let last = null;
    for (const next of [...want.children]) {
      let element = old.get(next.id);
      old.delete(next.id);
      const text = next.outerHTML;
      if (!element || sent.get(element) !== text) {
        if (element && list(element) && list(next)) {
          update(list(element), list(next));
        } else {
          const before = element;
          element = document.importNode(next, true);
          if (before) replace(before, element);
          else {
            have.append(element);
            document.dispatchEvent(new CustomEvent("replaced", { detail: element }));
          }
        }
        sent.set(element, text);
      }
      const due = last ? last.nextElementSibling : have.firstElementChild;
      if (due !== element) have.insertBefore(element, due);
      last = element;
    }
    for (const element of old.values()) element.remove();
  };
  const load = async (address) => {
    const answer = await fetch(address, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };
  // Whatever is asked for many times within a while is done once, and never twice at the same time.
  const paced = (wait, job) => {
    let timer, chain = Promise.resolve();
    return () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        chain = chain.then(job).catch(() => {});
      }, wait);
    };
  };
  const now = paced(250, async () => {
    const next = (await load("now")).getElementById("now"), old = document.getElementById("now");
    if (next && next.outerHTML !== sent.get(old)) {
      const text = next.outerHTML, element = document.importNode(next, true);
      replace(old, element);
      sent.set(element, text);
    }
  });
  const page = paced(250, async () => {
    const next = await load(".");
    if (!next.body.dataset.version) return;
    for (const id of ["head", "sections"]) {
      const old = document.getElementById(id), element = document.importNode(next.getElementById(id), true);
      if (old.outerHTML !== element.outerHTML) replace(old, element);
    }
    update(document.getElementById("main"), next.getElementById("main"));
    document.title = next.title;
    document.body.dataset.version = next.body.dataset.version;
  });
  const connect = () => {
    const events = new EventSource("events?from=" + encodeURIComponent(document.getElementById("now").dataset.at));
    events.onopen = () => { document.body.classList.remove("lost"); now(); };
    events.onmessage = now;
    events.addEventListener("now", now);
    events.addEventListener("page", (e) => { if (e.data !== document.body.dataset.version) page(); });
    events.onerror = () => {
      document.body.classList.add("lost");
      if (events.readyState === EventSource.CLOSED) setTimeout(connect, 5000);
    };
  };
  sent.set(document.getElementById("now"), document.getElementById("now").outerHTML);
  remember(document.getElementById("main"));
  connect();
  setInterval(() => { if (document.querySelector("#now[data-active]") && !document.hidden) now(); }, 10000);
})();
