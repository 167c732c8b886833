/* caddy-sitemap: filters the rows of a page for people. */
"use strict";
{
	const words = document.querySelector("#words");
	const count = document.querySelector("output");
	const sections = document.querySelectorAll("section");
	const fold = text => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
	const rows = Array.from(document.querySelectorAll("h2 a, ul a"), a => {
		const row = a.closest("li, h2");
		return { a, row, text: fold(row.textContent) };
	});
	const wanted = () => fold(words.value).split(/\s+/).filter(word => word);
	const hits = () => {
		const all = wanted();
		return rows.filter(({ text }) => all.every(word => text.includes(word)));
	};
	const filter = () => {
		const isOn = wanted().length > 0;
		const shown = new Set(isOn ? hits() : rows);
		for (const one of rows) {
			one.row.hidden = !shown.has(one);
		}
		for (const section of sections) {
			section.hidden = isOn && !rows.some(one => shown.has(one) && section.contains(one.row));
		}
		const result = shown.size === 0 ? count.dataset.none : `${shown.size} / ${rows.length}`;
		count.textContent = isOn ? result : "";
	};
	words.addEventListener("input", filter);
	words.addEventListener("keydown", event => {
		if (event.key === "Enter" && !event.isComposing && wanted().length) {
			hits()[0]?.a.click();
		}
		if (event.key === "Escape") {
			words.value = "";
			filter();
		}
	});
	addEventListener("pageshow", filter); // the browser may have kept the words
	words.parentElement.hidden = false;
}
