"""How a beanstalkd is spoken to. Nobody but `scheduler.queues.beanstalkd` looks in here."""
