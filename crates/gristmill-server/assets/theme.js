// Before anything is drawn: the look that was chosen last, if one was.
(() => {
  try {
    const chosen = localStorage.getItem("gristmill-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch { /* a browser that keeps nothing follows the system */ }
})();
