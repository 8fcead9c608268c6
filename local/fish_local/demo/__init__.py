"""The whole product in three minutes: a traffic wave takes GPUs from a cleaning job and gives them back.

The demo uses the product as its users do: kubectl, Helm, custom resources, HTTP. It imports no other room.
"""
