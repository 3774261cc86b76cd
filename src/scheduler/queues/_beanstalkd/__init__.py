"""The protocol of beanstalkd. Only `scheduler.queues.beanstalkd` uses it."""
