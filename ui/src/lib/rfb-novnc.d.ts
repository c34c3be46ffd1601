// What of noVNC the window uses; the package brings no types of its own.
declare module "@novnc/novnc" {
  export interface RawChannel {
    binaryType: string;
    readonly protocol: string;
    readonly readyState: number;
    onopen: ((event: unknown) => void) | null;
    onmessage: ((event: { data: ArrayBuffer }) => void) | null;
    onclose: ((event: { code: number; reason: string }) => void) | null;
    onerror: ((event: unknown) => void) | null;
    send(data: Uint8Array | ArrayBuffer): void;
    close(): void;
  }

  export interface RfbEvents {
    connect: CustomEvent<object>;
    disconnect: CustomEvent<{ clean: boolean }>;
    credentialsrequired: CustomEvent<{ types: string[] }>;
    securityfailure: CustomEvent<{ status: number; reason?: string }>;
    serververification: CustomEvent<{ type: string }>;
    clipboard: CustomEvent<{ text: string }>;
  }

  /** What has come and is not read yet, and what is to be sent. */
  export interface Wire {
    /** Whether fewer than `bytes` are there; then it goes back `back` of them. */
    rQwait(what: string, bytes: number, back?: number): boolean;
    rQpeekBytes(bytes: number): Uint8Array;
    rQskipBytes(bytes: number): void;
  }

  export default class RFB {
    static messages: { clientEncodings(wire: Wire, encodings: number[]): void };
    constructor(place: HTMLElement, channel: RawChannel, options?: { shared?: boolean; credentials?: { password?: string } });
    viewOnly: boolean;
    focusOnClick: boolean;
    scaleViewport: boolean;
    resizeSession: boolean;
    background: string;
    addEventListener<E extends keyof RfbEvents>(name: E, listener: (event: RfbEvents[E]) => void): void;
    disconnect(): void;
    focus(options?: FocusOptions): void;
    blur(): void;
    sendKey(keysym: number, code: string, down?: boolean): void;
    clipboardPasteFrom(text: string): void;
    /** The server says how large its screen is. */
    protected _resize(width: number, height: number): void;
    protected _sock: Wire;
    protected _fbDepth: number;
    /** The rectangle that is being read. */
    protected _FBU: { encoding: number | null };
    /** By number of the encoding. */
    protected _decoders: Record<number, unknown>;
    /** Tells the server what it may send. */
    protected _sendEncodings(): void;
    /** Draws a rectangle; whether all of it was there. */
    protected _handleDataRect(): boolean;
    /** Reads a text of the server's clipboard; whether all of it was there. */
    protected _handleServerCutText(): boolean;
  }
}
