"""The codec: ten codes a frame ↔ 2048 samples, frame by frame, with everything it remembers in plain sight."""
