// Light or dark: as the system has it, until the reader says otherwise.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  function remembered() {
    try { return localStorage.getItem("leastwise-theme"); } catch { return null; }
  }

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  }

  function show() {
    button.setAttribute("aria-pressed", String(isDark()));
  }

  if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered();
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("leastwise-theme", root.dataset.theme); } catch { /* a page without a store */ }
    show();
  });
  system.addEventListener("change", show);
  show();
})();
