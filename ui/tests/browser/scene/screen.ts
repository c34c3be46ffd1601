// The screen of a box in the pictures: a server that speaks just enough RFB 3.8 to show one picture, and
// the picture, a browser at the project's web app.

export const WIDTH = 1280;
export const HEIGHT = 800;

const text = (words: string) => [...words].map((c) => c.charCodeAt(0));
const u16 = (n: number) => [n >> 8, n & 255];
const u32 = (n: number) => [n >>> 24, (n >> 16) & 255, (n >> 8) & 255, n & 255];
/** 32 bits a pixel, red first. */
const FORMAT = [32, 24, 0, 1, ...u16(255), ...u16(255), ...u16(255), 0, 8, 16, 0, 0, 0];
const NAME = text("fix-login");
const VERSION = text("RFB 003.008\n");
const NO_PASSWORD = [1, 1];
const WELCOME = u32(0);
const RAW = u32(0);
/** What a client asks for a picture with. */
const WANTS_PICTURE = 3;

/** Answers each word of the client's; a word is what it sends at once. */
export class SceneScreen {
  readonly #give: (bytes: Uint8Array) => void;
  readonly #answers = [NO_PASSWORD, WELCOME, [...u16(WIDTH), ...u16(HEIGHT), ...FORMAT, ...u32(NAME.length), ...NAME]];
  #shown = false;

  constructor(give: (bytes: Uint8Array) => void) {
    this.#give = give;
  }

  begin(): void {
    this.#say(VERSION);
  }

  hear(bytes: Uint8Array): void {
    const answer = this.#answers.shift();
    if (answer) this.#say(answer);
    else if (!this.#shown && asksForPicture(bytes)) {
      this.#shown = true;
      this.#show();
    }
  }

  #show(): void {
    const pixels = picture();
    const head = [0, 0, ...u16(1), ...u16(0), ...u16(0), ...u16(WIDTH), ...u16(HEIGHT), ...RAW];
    const update = new Uint8Array(head.length + pixels.length);
    update.set(head);
    update.set(pixels, head.length);
    this.#give(update);
  }

  #say(bytes: number[]): void {
    this.#give(Uint8Array.from(bytes));
  }
}

/** The client says its format and encodings first, perhaps all in one go. */
function asksForPicture(bytes: Uint8Array): boolean {
  return bytes.length >= 10 && bytes[bytes.length - 10] === WANTS_PICTURE;
}

/** What is on the screen, four bytes a pixel. */
function picture(): Uint8ClampedArray {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [WIDTH, HEIGHT];
  const pen = canvas.getContext("2d") as CanvasRenderingContext2D;
  browser(pen);
  shop(pen);
  return pen.getImageData(0, 0, WIDTH, HEIGHT).data;
}

const INK = "#1d2330";
const GREY = "#6b7280";
const GREEN = "#0f766e";
const FONT = "DejaVu Sans, sans-serif";

function area(pen: CanvasRenderingContext2D, colour: string, x: number, y: number, width: number, height: number, round = 0): void {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.roundRect(x, y, width, height, round);
  pen.fill();
}

function edge(pen: CanvasRenderingContext2D, colour: string, x: number, y: number, width: number, height: number, round: number): void {
  pen.strokeStyle = colour;
  pen.beginPath();
  pen.roundRect(x + 0.5, y + 0.5, width, height, round);
  pen.stroke();
}

function words(pen: CanvasRenderingContext2D, said: string, x: number, y: number, size: number, colour: string, weight = "normal"): void {
  pen.font = `${weight} ${size}px ${FONT}`;
  pen.fillStyle = colour;
  pen.fillText(said, x, y);
}

/** One tab and an address. */
function browser(pen: CanvasRenderingContext2D): void {
  area(pen, "#dfe3ea", 0, 0, WIDTH, 44);
  area(pen, "#ffffff", 10, 8, 240, 40, 9);
  area(pen, GREEN, 24, 19, 15, 15, 3);
  words(pen, "Sign in · Acme Shop", 48, 32, 14, INK);
  area(pen, "#ffffff", 0, 44, WIDTH, 48);
  words(pen, "←   →   ⟳", 20, 74, 17, GREY);
  area(pen, "#eef1f5", 120, 53, WIDTH - 150, 31, 15);
  words(pen, "localhost:3000/login", 140, 74, 15, INK);
  area(pen, "#d7dbe2", 0, 92, WIDTH, 1);
}

/** The page on which the agent tries what it has mended. */
function shop(pen: CanvasRenderingContext2D): void {
  area(pen, "#f6f7f9", 0, 93, WIDTH, HEIGHT - 93);
  area(pen, "#ffffff", 0, 93, WIDTH, 64);
  area(pen, "#e3e6eb", 0, 157, WIDTH, 1);
  words(pen, "Acme Shop", 60, 133, 23, GREEN, "bold");
  for (const [at, link] of ["Products", "Orders", "Help"].entries()) words(pen, link, 860 + at * 120, 131, 16, INK);

  area(pen, "#ffffff", 420, 215, 440, 470, 12);
  edge(pen, "#dfe3ea", 420, 215, 440, 470, 12);
  words(pen, "Sign in", 460, 277, 27, INK, "bold");
  area(pen, "#e6f4f1", 460, 300, 360, 46, 7);
  words(pen, "Your session ended while you were away.", 476, 329, 15, GREEN);
  field(pen, 372, "Email", "ada@example.org");
  field(pen, 462, "Password", "••••••••••");
  area(pen, GREEN, 460, 570, 360, 48, 8);
  words(pen, "Sign in", 608, 600, 17, "#ffffff", "bold");
  words(pen, "Forgot your password?", 460, 655, 15, GREY);
}

function field(pen: CanvasRenderingContext2D, y: number, label: string, value: string): void {
  words(pen, label, 460, y, 15, GREY);
  area(pen, "#ffffff", 460, y + 10, 360, 44, 7);
  edge(pen, "#aab1bd", 460, y + 10, 360, 44, 7);
  words(pen, value, 476, y + 38, 16, INK);
}
