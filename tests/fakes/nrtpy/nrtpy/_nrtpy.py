"""A fake of the private part of nrtpy: a system trace, as public reports show its events.

``nc_exec_running`` has a start and a stop of each physical core, with ``tracking_id``, ``nc_idx``, and in ``data``
``exec_id`` and ``nc_timestamp_ns``. The clocks of two cores are not the same.
"""

import json

import nrtpy


class SystemTraceSession:
    """The events between entry and exit."""

    def __enter__(self):
        nrtpy.launches.clear()
        return self

    def __exit__(self, *raised):
        return None

    def fetch_events_json(self):
        """All events so far."""
        events = [{"event_type": "nrt_execute", "phase": "start"}]
        for execution, cores in enumerate(nrtpy.launches):
            for phase in ("start", "stop"):
                for core in range(cores):
                    began = 10**9 * (core + 1) + 100_000 * execution
                    ended = began + round(nrtpy.CORES_MS[core] * 1e6)
                    events.append(
                        {
                            "event_type": "nc_exec_running",
                            "phase": phase,
                            "nc_idx": core,
                            "tracking_id": execution,
                            "data": {"exec_id": execution, "nc_timestamp_ns": began if phase == "start" else ended},
                        }
                    )
        return json.dumps({"events": events})
