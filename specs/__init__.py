"""What must hold: environment, wiring, properties and historic variants, one file a machine or system."""
