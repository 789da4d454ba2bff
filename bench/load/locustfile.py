"""Users who ask again as soon as they have their answer."""

from locust import FastHttpUser, constant, task


class Reader(FastHttpUser):
    wait_time = constant(0)
    insecure = True

    @task
    def read(self) -> None:
        self.client.get("/128")
