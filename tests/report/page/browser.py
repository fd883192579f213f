"""A headless Chromium for tests that open a page; None where there is none."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def missing() -> str:
    """Why no browser can be had, '' where one can."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"no browser: found no {program}"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "no browser: selenium is not installed"
    return ""


def start(profile: Path, *, width: int = 1280, height: int = 860, dark: bool = False) -> Any:
    """A driver of a new browser, whose profile goes into an empty directory."""
    os.environ["SE_OFFLINE"] = "true"  # nothing is downloaded: the driver is the one that is installed
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*_FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    if dark:
        options.add_argument("--blink-settings=preferredColorScheme=0")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))


class Reader:
    """Somebody who reads a page: sees what stands there, clicks and types."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path) -> None:
        """Open a page and wait until it is ready."""
        self.driver.get(page.absolute().as_uri())
        self.wait()

    def enter(self, selector: str) -> None:
        """Go into a frame of the page, and wait until what is in it is ready."""
        self.driver.switch_to.frame(self.see(selector))
        self.wait()

    def wait(self) -> None:
        """Wait until the page is ready, or the frame that the reader is in."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 20, 0.02).until(lambda _: self.see("html").get_attribute("data-ready"))

    def see(self, selector: str) -> Any:
        """The first element of a CSS selector."""
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        """All elements of a CSS selector."""
        return list(self.driver.find_elements("css selector", selector))

    def text(self, selector: str) -> str:
        """The text that is shown of an element, in one question: the page may draw it anew between two."""
        return str(self.driver.execute_script("return document.querySelector(arguments[0]).innerText.trim()", selector))

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements of a CSS selector, in one question to the browser."""
        script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText.trim())"
        return list(self.driver.execute_script(script, selector))

    def click(self, selector: str, words: str = "") -> None:
        """Click the first element of a selector that has these words."""
        # By a script: canvases and sticky parts may lie over what the driver would call clickable.
        script = """
            const words = (each) => each.innerText ?? each.textContent;
            [...document.querySelectorAll(arguments[0])].find((each) => words(each).includes(arguments[1])).click();
        """
        self.driver.execute_script(script, selector, words)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        for key in keys:
            ActionChains(self.driver).send_keys(getattr(Keys, key, key)).perform()

    def line(self) -> int:
        """The number of the source line that is selected."""
        return int(self.see(".line[aria-selected=true]").get_attribute("data-line"))

    def turn(self) -> dict[str, str]:
        """What the steppers show: the counters of the turn."""
        return {
            each.get_attribute("data-axis"): each.find_element("css selector", "output").text
            for each in self.all(".stepper")
        }

    def complaints(self) -> list[str]:
        """What the page has written to the console: errors of scripts, and what its policy has refused."""
        return [json.dumps(entry) for entry in self.driver.get_log("browser")]

    def drag(self, selector: str, across: int, down: int) -> None:
        """Drag an element by so many pixels with the mouse."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).drag_and_drop_by_offset(self.see(selector), across, down).perform()
