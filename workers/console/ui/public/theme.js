// Runs before the first paint, so that the chosen theme does not flash.
(() => {
  const chosen = localStorage.getItem("iii.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
