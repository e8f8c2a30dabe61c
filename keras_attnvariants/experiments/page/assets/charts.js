"use strict";

/* Says what a mark of a chart is, and brings a series forward in all charts. */
(() => {
  const tip = document.getElementById("tip");
  const pinned = new Set();

  const focus = (names) => {
    for (const svg of document.querySelectorAll("figure svg")) {
      const marks = [...svg.querySelectorAll("[data-series]")];
      const isHere = marks.some((mark) => names.has(mark.dataset.series));
      svg.classList.toggle("focusing", isHere);
      for (const mark of marks) {
        mark.classList.toggle("focused", isHere && names.has(mark.dataset.series));
      }
    }
    for (const row of document.querySelectorAll("tr[data-series]")) {
      row.classList.toggle("focused", names.has(row.dataset.series));
    }
  };

  const show = (name) => focus(name ? new Set([...pinned, name]) : pinned);

  for (const button of document.querySelectorAll(".legend button")) {
    const name = button.dataset.series;
    button.addEventListener("click", () => {
      pinned.has(name) ? pinned.delete(name) : pinned.add(name);
      for (const same of document.querySelectorAll(".legend button")) {
        same.setAttribute("aria-pressed", pinned.has(same.dataset.series));
      }
      show(null);
    });
    for (const event of ["pointerenter", "focus"]) {
      button.addEventListener(event, () => show(name));
    }
    for (const event of ["pointerleave", "blur"]) {
      button.addEventListener(event, () => show(null));
    }
  }

  const place = (x, y) => {
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, x - width / 2), innerWidth - width - 8);
    const above = y - height - 14;
    tip.style.left = `${left}px`;
    tip.style.top = `${above < 8 ? y + 18 : above}px`;
  };

  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest?.("figure svg [data-series]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.getAttribute("aria-label");
    place(event.clientX, event.clientY);
    if (mark.dataset.series) show(mark.dataset.series);
    mark.addEventListener("pointerleave", () => show(null), { once: true });
  });
  document.addEventListener("pointermove", (event) => {
    if (!tip.hidden) place(event.clientX, event.clientY);
  });
})();
