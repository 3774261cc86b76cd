"""Our scheduler without a store in the durable scenarios: what durability is compared with."""

from child import serve
from our_durable import measurements

if __name__ == "__main__":
    serve(measurements(), distribution="timerqueue")
