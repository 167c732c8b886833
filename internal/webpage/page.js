"use strict";
{
	const words = document.querySelector("#words");
	const count = document.querySelector("output");
	const sections = document.querySelectorAll("section");
	const fold = text => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
	const rows = Array.from(document.querySelectorAll("ul li"), li => ({ li, text: fold(li.textContent) }));
	const filter = () => {
		const wanted = fold(words.value).split(/\s+/);
		let shown = 0;
		for (const { li, text } of rows) {
			li.hidden = !wanted.every(word => text.includes(word));
			shown += li.hidden ? 0 : 1;
		}
		for (const section of sections) {
			section.hidden = !section.querySelector("li:not([hidden])");
		}
		count.textContent = words.value.trim() ? `${shown} of ${rows.length} shown` : "";
	};
	words.addEventListener("input", filter);
	addEventListener("pageshow", filter); // the browser may have kept the words
	words.parentElement.hidden = false;
}
