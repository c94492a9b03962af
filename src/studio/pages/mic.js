// Runs in the audio thread and passes the microphone's samples to the page in blocks.
class Tap extends AudioWorkletProcessor {
    constructor() {
        super();
        this.block = new Float32Array(4096);
        this.n = 0;
    }
    process([input]) {
        const x = input[0];
        for (let i = 0; x && i < x.length; i++) {
            let sum = 0;
            for (const channel of input) sum += channel[i];
            this.block[this.n++] = sum / input.length;
            if (this.n === this.block.length) {
                this.port.postMessage(this.block.slice());
                this.n = 0;
            }
        }
        return true;
    }
}
registerProcessor("tap", Tap);
