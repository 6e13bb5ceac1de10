// Every sentence and label of the page, by the file that shows it. A translation is this one file.
// {name} stands for something that is filled in: a token, a number, an element.

export const STRINGS = {
  attention: {
    all: "Show all {n} heads",
    alone: "Only {token} is there, and each head looks at nothing else.",
    heads: "Heads",
    isOff: "This head is switched off: it looks, but nothing of what it sees arrives.",
    legend: "Thickness of a line: ",
    looked: "To guess {token} after {before}, head {head} looked most at {word}: {share} of its attention.",
    looks: "After {before}, head {head} looks most at {word}: {share} of its attention.",
    order:
      "Each layer has several heads, and each looks in its own way (head 1.2 is the second head of layer 1). " +
      "Those that did most for {token} come first; the number is what a head added to its score.",
    strip: "What this head looks at",
    what: "Attention says how much a head takes from each token; its shares add up to 100 %.",
  },
  bars: { beginning: "the beginning" },
  client: {
    noReason: "no reason is known",
    stopped: "The model has stopped: {reason}. Load this page again.",
    unknownCharacter: "This model has no token for “{character}” (character {place}): take it out, and write again.",
  },
  draw: {
    best: "After {row} the model gives {best} {p}: its first guess. The second is {second} with {q}.",
    bits: "bits",
    byModel: "the model",
    bySettings: "your settings",
    coming: "A die chooses a point of the strip. Here it shows {number}, and there lies {falls}, which comes next.",
    comingCold: "At temperature 0 no die is thrown: the likeliest comes next, {falls}.",
    entropy: "It is unsure by {bits} (entropy: 0 if certain, 1 for a coin, more for more possible tokens).",
    first: "Nothing comes before the first token, so the model does not predict it. Choose a later one.",
    forbidden: "A token that the training text cannot have is never drawn.",
    goOn: "Go on from here with this token",
    how:
      "A token is a word, a part of one or a sign; in it ␣ is a space and ↵ a new line. The settings bend the model's " +
      "chances, and the die is thrown for those. Press a token to write it here.",
    list: "The likeliest tokens",
    next: "After {row} the likeliest next token is {best} with {p}, then {second} with {q}.",
    other: "After {row} the model gives {token} {p}: its guess number {rank}. The first is {best} with {q}.",
    otherHeads: "other heads off",
    others: "many others",
    otherwise:
      "It was drawn with other settings ({settings}). With yours the die shows {number}, and there lies {falls}.",
    replayed: "It was drawn with these settings: the die showed {number}, and there lies {token}.",
    replayedCold: "It was written with these settings: at temperature 0 no die is thrown, the likeliest is taken.",
    rest: "Below these are {others} others. With your settings {left} tokens can be drawn.",
    restOne: "Below these are {others} others. With your settings only one token can be drawn.",
    slowly: "Draw one token slowly",
    step: "One step",
    stepCold: "3. At temperature 0 no die is thrown: the likeliest token is taken.",
    stepDie: "3. The die shows {number}, a number from 0 to 1. It depends on the seed, the place and the text before.",
    stepModel: "1. The model gives each token a chance. The strip lays them side by side, the likeliest first.",
    stepOther:
      "4. The token that lies there is {falls}. In the text is another one, which did not come from this draw.",
    stepSettings: "2. Temperature and filters bend the lengths.",
    stepToken: "4. The token that lies there is {falls}.",
    take: "Use its settings",
    typed: "It was put there, not drawn. With your settings the die shows {number}, and there lies {falls}.",
    typedCold: "It was put there, not drawn. At temperature 0 the likeliest is taken: {falls}.",
  },
  feedForward: {
    elsewhere: "In this text it also fires after:",
    first: "Nothing comes before the first token, so the model computes nothing for it. Choose a later one.",
    layer: "Layer",
    look: "Look there",
    more: "{count} more units",
    next: "After {before} unit {unit} of layer {layer} fires most: its activation is {strength}. It makes {raised} likelier.",
    raises: "It makes likelier:",
    unit: "unit {unit}",
    what:
      "After attention each layer has a feed-forward network. A unit of it compares the token's vector with a pattern " +
      "and fires if they match; the number says how strongly (its activation). Then it adds a vector of its own, which " +
      "makes some tokens likelier. If the number is negative, it adds the opposite. These are the units that fire most " +
      "here.",
    why:
      "Before {token} was predicted, unit {unit} of layer {layer} fired most: its activation was {strength}. It makes " +
      "{raised} likelier.",
  },
  headNames: {
    firstToken: "first token",
    induction: "induction",
    itself: "itself",
    previousToken: "previous token",
    sameTokenBefore: "same token before",
    tested: "{role} ({share} of its attention in a test)",
  },
  header: {
    about: "About this model",
    base: "This small language model, the base of minigpt, has read English books, articles and talk.",
    baseRead: "This small language model, the base of minigpt, has read {size} of English books, articles and talk.",
    began: "Its training began with {beginning}.",
    close: "Close",
    context: "It sees at most the last {count} tokens of a text when it guesses the next one.",
    dark: "Dark",
    guesses: "It guesses how a text goes on, one piece at a time.",
    head: "In each layer there is {count} head. A head looks back at earlier tokens.",
    heads: "In each layer there are {count} heads. A head looks back at earlier tokens.",
    layer: "It has {count} layer, in which every token is worked on.",
    layers: "It has {count} layers. A text passes through one after another.",
    light: "Light",
    other: "This is the language model {title}.",
    parameters: "It consists of {count} parameters: numbers that the training has set.",
    private: "It runs in your browser. Nothing that you type leaves this page.",
    read: "This small language model has read {text}{size}{time}.",
    sized: " ({size})",
    timed: " for {time}",
    vocabulary:
      "Its vocabulary has {count} tokens: the pieces, words or parts of words, that it reads and writes. In them ␣ is a " +
      "space and ↵ a new line.",
  },
  heads: {
    allAreOn: "All {all} heads are on: after {before} the model gives {token} {whole}. Switch one off and see.",
    allOn: "All on",
    bits: "bits",
    first: "Nothing comes before the first token, so no head changes it. Choose a later one.",
    head: "Head",
    less: "without them",
    oneIsOff:
      "Without head {off} the model gives {token} {less} instead of {whole}. The predictions differ by {divergence}.",
    rewrite: "Write again without them",
    someAreOff:
      "Without heads {off} the model gives {token} {less} instead of {whole}. The predictions differ by {divergence}.",
    switches: "Heads that are on",
    what:
      "Attention shows where a head looks, not whether it matters. A head that is off adds nothing to the model, " +
      "here and in all other views and in what is written. Each row is a layer; filled is on.",
    whole: "all heads",
  },
  layers: {
    after: "after layer {layer}",
    always: "After {before} the first guess is {token} from the start, and it has {end} in the end.",
    caption:
      "The likeliest next token, if the model ended after each layer (the logit lens). A column is a place, named " +
      "after the last token read there; underlined is the token that does follow.",
    first: "Nothing comes before the first token, so no layer predicts it. Choose a later one.",
    last: "After {before} the first guess is {token} only after the last layer, with {end}.",
    never: "After {before} the first guess is not {token}, which has {end} in the end, but {best}.",
    read: "read",
    since: "After {before} the first guess is {token} from layer {layer} on: {there} there, {end} in the end.",
    start: "at the start",
    table: "Layer by layer, as a table",
  },
  learned: {
    meaning:
      "The solid line is text that was set aside, the dashed one text that it has learned from. Fewer bits are better: " +
      "a byte (a letter, or a part of one) takes 8 bits without a model.",
    moment:
      "After {time} ({step} steps) the model needed {validation} bits for a byte of text that it had not read, and " +
      "{training} bits for a byte of text that it had read.",
    noSample: "No sample of this moment was kept.",
    once:
      "It was measured once, at the end. Fewer bits are better: a byte (a letter, or a part of one) takes 8 bits " +
      "without a model.",
    sample: "What it wrote at that moment",
    slider: "Moment of the training",
    unit: "bits per byte",
    unknown: "This file holds no record of the training, so it cannot show how the model learned.",
    value: "{time}, step {step}",
  },
  link: {
    copied: "Copied: the link opens this text, token and view.",
    copyLink: "Copy link",
    copyText: "Copy text",
    partCopied: "Copied: add it at the end of this page's address, on any machine that has the file.",
    refused: "The browser lets this page copy nothing. The link is its address now: copy it there.",
    textCopied: "Copied.",
    textRefused: "The browser lets this page copy nothing. Select the text and copy it yourself.",
    tooLong: "This text is too long for a link (16,000 characters at most). Copy the text instead.",
  },
  look: {
    sheet: "Sheet",
    sheetHelp: "The same text as the model reads it, to type anywhere",
    switch: "How the text is shown",
    talk: "Talk",
    talkHelp: "The text as turns, and a line to say something",
  },
  map: {
    attention: "attention: where each head looks",
    chances: "Chances",
    draw: "The draw",
    feedForward: "feed-forward: which units fire",
    layer: "layer",
    map: "The model, and the way around",
    norms: "length {start} → {end}",
    stream: "Stream",
    text: "Text",
    tokens: "Tokens",
    vectors: "Vectors",
  },
  numbers: {
    caption: "Head {head}{role}.",
    head: "head",
    isOff: "This head is switched off: its context vector is zero.",
    keyColumn: "key k",
    later: "a later token",
    layer: "layer",
    masked: "masked",
    next: "After {before}, head {head} compares its query with the keys before it; {word} gets the largest weight: {weight}.",
    others: "The {n} other tokens have smaller weights.",
    productColumn: "q · k",
    scoreColumn: "÷ √{d}",
    softmaxColumn: "softmax",
    step1: "1. The query of {token} is q = {q} ({d} numbers). It says what the head looks for.",
    step2:
      "2. It is multiplied with the key of each token and divided by the root of their size. Later tokens are masked. " +
      "Softmax turns the scores into weights that add up to 1.",
    step3: "3. The context vector is the sum of weight · value. Its first number: {terms} = {sum}. All: ",
    step4: "4. The context vectors of all heads are joined to {all} numbers; this head fills {from} to {to}.",
    step5: "5. out_proj mixes them: {output}, length {added}. This is added to the stream, which had length {stream}.",
    table: "Scores and weights",
    tokenColumn: "token",
    valueColumn: "value v",
    what: "A query is compared with the key of each token, and the values are added up. Vectors show their first numbers.",
    why: "To guess {token} after {before}, head {head} compared a query with the keys; {word} got the largest weight: {weight}.",
  },
  opening: { hint: "Openings to try:" },
  panel: {
    close: "Close",
    computing: "computing …",
    first: "How does a text begin?",
    next: "What next?",
    nextAfter: "What comes after {token}?",
    open: "Open",
    png: "Save PNG",
    question: "The question",
    svg: "Save SVG",
    why: "Why this word?",
    whyToken: "Why {token}?",
    writing: "Writing. Choose a word to ask why.",
  },
  settings: {
    all: "all",
    limits: "From {min} to {max}; {used} is used.",
    maxNewTokens: "Length",
    maxNewTokensHelp: "How many tokens to write at once, 1 to 2,000.",
    minP: "Min p",
    minPHelp: "Leaves out tokens less likely than this share of the likeliest one.",
    repetitionPenalty: "Repetition penalty",
    repetitionPenaltyHelp: "Above 1 it avoids tokens that are in the text already.",
    seed: "Seed",
    seedHelp: "The number that the die starts from, 0 to 4,294,967,295; -1: any. The same seed writes the same text.",
    temperature: "Temperature",
    temperatureHelp: "Below 1 safer, above 1 bolder. 0 always takes the likeliest token.",
    topK: "Top k",
    topKHelp: "Draws among this many of the likeliest tokens; 0: among all.",
    topP: "Top p",
    topPHelp: "Draws among the fewest tokens that are together this probable.",
  },
  sheet: {
    attention: "Darker words are looked at more: {scale}",
    ended: "∎ The model has ended the text. Write begins a new one after the mark.",
    next: "Next token",
    nextShort: "token ›",
    origins: "{typed} or {written}.",
    outOfSight: "The model sees at most {n} tokens at once. The grey text is out of its sight here.",
    previous: "Previous token",
    previousShort: "‹ token",
    surprise: "Darker words surprised the model more: {scale}",
    toView: "To the view of this token",
    type: "Type",
    typed: "You typed it",
    unknown: "The model has no token for {characters} and does not see it.",
    written: "the model wrote it",
  },
  talk: {
    answers: "{speaker} answers",
    cancel: "Cancel",
    edit: "Edit",
    editOf: "Edit what {speaker} says",
    goOn: "Go on",
    heard: "{speaker}: {said}",
    left: "The model no longer sees what is above.",
    letSpeak: "Let {speaker} speak",
    log: "The talk",
    manner:
      "The model takes on the manner of those who speak here; it knows nothing. Click a word to ask why it was said.",
    nameless: "no name",
    new: "New talk",
    newHelp: "Forget all that was said; Undo brings it back",
    nothing: "Nothing has been said yet.",
    placeholder: "Say something",
    lineOf: "Say something as {speaker}",
    save: "Save",
    send: "Send",
    speaksAs: "You speak as {speaker}",
  },
  tip: {
    chance: "{token} had {chance}: {bits} bits of surprise",
    first: "{token} is the first token: nothing predicts it",
    ranked: "{token} had {chance}: {bits} bits of surprise, rank {rank} of {all}",
  },
  /** Tokens that stand for no characters, or for an empty line between two turns. */
  tokens: { end: "end of text", endOfTurn: "end of turn", speaker: "next speaker" },
  tour: {
    attention:
      "Heads look back at earlier tokens. For {token} head {head} counts most: the arcs show where it looks, the thicker " +
      "the more.",
    back: "Back",
    begin: "Tour",
    count: "Step {step} of {steps}",
    end: "End the tour",
    guess: "The model guesses the next piece of a text, again and again. Try it yourself. What comes next here?",
    isOff: "Head {head} is off, on the whole page. Now {token} has {now}. Switch it on again, or look around.",
    isOn: "With all heads, {token} has {now}. Does head {head} matter? Switch it off, and every number changes.",
    looking: "Looking for a good example in this text",
    next: "Next",
    nothing: "This text has no example: too little of it is there. Write more, and begin the tour again.",
    options: "Possible next pieces",
    right: "Right: it is {token}.",
    scores:
      "You paid {you} bits, the model, with the same choice, {model}. Fewer are better: sure and right costs 0, a blind " +
      "guess {blind}, sure and wrong the most.",
    skip: "Skip the tour",
    sure: "How sure will you be?",
    surprise:
      "Surprise is measured in bits: 0 if the model was certain, 1 more whenever the chance halves. {token} cost it " +
      "{bits} bits. The most surprising token of this text is {other} with {most}. The tints of the text show it.",
    switchOff: "Switch head {head} off",
    switchOn: "Switch head {head} on",
    title: "Tour",
    title1: "Guess the next word",
    title2: "Tokens",
    title3: "Surprise",
    title4: "Attention",
    title5: "Switch a head off",
    tokens:
      "The model reads pieces called tokens: words, parts of words, signs (␣ is a space, ↵ a new line). This text has " +
      "{count}. {token} is number {number} of the {size} that it knows. Inside, each is a list of numbers, a vector.",
    whole: "Among all {count} tokens the model gave {token} {probability}.",
    wrong: "It is {token}.",
  },
  triangle: {
    asTable: "as a table",
    caption: "Attention weights of the last {n} of {all} tokens: a row looks at the columns.",
    cell: "{row} looks at {column}: {share} of its attention",
    head: "Head {head}{role}",
    heads: "All heads",
    how: "A row is a token, a column a token that it looks at. The colours mean the same in every head.",
    keys: "Attention weights; the arrow keys move",
    table: "Attention weights as a table",
    title: "All tokens at once",
    token: "token",
  },
  units: {
    bytes: "{count} bytes",
    hour: "an hour",
    hours: "{count} hours",
    kilobytes: "{count} kB",
    megabytes: "{count} MB",
    minute: "a minute",
    minutes: "{count} minutes",
    second: "a second",
    seconds: "{count} seconds",
  },
  vectors: {
    first: "Nothing comes before the first token, so the model computes nothing for it. Choose a later one.",
    layer: "after layer {layer}",
    learned: "A vector for this position is added to the token's own.",
    lengths: "How long the vector becomes",
    lengthsMean:
      "Each layer adds to the vector; the sum is called the residual stream. Its length shows how much was added.",
    lens: "What it would say after each layer",
    nearPredicted: "Nearest to {token}, the predicted token",
    nearRead: "Nearest to {token}, the token read last",
    place: "{token} is token {place} of the {all} that the model can see at once.",
    rotary: "Its position turns the queries and keys of attention, so that heads know how far apart tokens are.",
    sentence:
      "The model starts from the vector of {token}: {size} numbers, which say what it knows of this token. Its length " +
      "grows from {start} to {end}. Tokens with similar vectors are used alike (1 is the same direction, 0 unrelated).",
    start: "at the start",
  },
  /** Titles of the views. */
  views: {
    why: "Why this word?",
    draw: "The draw",
    attention: "Attention",
    numbers: "By numbers",
    feedForward: "Feed-forward",
    vectors: "Vectors",
    layers: "Layer by layer",
    heads: "Heads off",
    learned: "How it learned",
  },
  why: {
    adds: "it adds",
    all: "Show all {n}",
    bias: "bias",
    biasClause: "learned numbers that are the same in every text",
    bits: "{bits} bits",
    byPart: "Which part of the model",
    byPartHow:
      "The model gives every token a score (its logit). The score of {token} is a sum; this is what each part adds.",
    byWord: "Which earlier word",
    byWordHow:
      "The number says how the chance of {token} changes without the word: −1 bit is half as likely, +1 bit twice as " +
      "likely. So a word with − has helped. The same colours mark the words in the text.",
    caution:
      "These numbers say how the chance was computed. They are not causes: parts work together, and where one is " +
      "missing another may do its work.",
    computing: "What happens without this head is being computed.",
    embedding: "embedding of {token}",
    embeddingClause: "the vector of the last token alone, before any layer",
    feedForward: "feed-forward layer {layer}",
    feedForwardClause: "works on what the heads have brought to this place",
    fewer: "Show fewer",
    first: "This is the first token. Nothing comes before it, so the model did not predict it. Choose a later one.",
    head: "head {head}",
    headClause: "layer and number of an attention head: it looks at earlier words and brings something of them",
    helped: "{word} made {token} likelier: without it, its chance changes by {bits}.",
    hindered: "{word} made {token} less likely: without it, its chance changes by {bits}.",
    isOff: "switched off",
    less: "← made it less likely",
    likeliest:
      "After {before} the model was {p} sure of {token}, its first guess. The second guess was {other} with {otherP}.",
    looks: "It looked most at {word}: {share} of its attention.",
    measured: "All {all} are measured. {last}, the last token before it, is always seen and is left out.",
    measuring: "{n} of {all} words so far, those with the most attention first.",
    more: "made it likelier →",
    mostHarmful: "Of the words before {before}, {word} mattered most; it spoke against {token} (without it {bits}).",
    mostHelpful: "Of the words before {before}, {word} mattered most (without it {bits}).",
    mostOfHeads: "The head that mattered most is {head} (without it {less} instead of {whole}).",
    next: "After {before} the model is {p} sure that {token} comes next. Its second guess is {other} with {otherP}.",
    noWords: "Only {word} comes before it, and the model always sees the last token.",
    noneMatters: "Of the words before {before}, none mattered much; {word} mattered most (without it {bits}).",
    nothing: "There is no text yet.",
    openHead: "Show its attention",
    others: "smaller parts: {n}",
    soFar: "More is being computed.",
    together: "together: its score",
    thrown: "The die fell on it all the same: “The draw” shows how.",
    unlikely:
      "After {before} the model gave {token} a chance of {p}: its guess number {rank} of {all}. " +
      "Its first guess was {other} with {otherP}.",
    without: "Without this head: {less} instead of {whole}.",
    withoutIt: "without it",
  },
  writing: {
    again: "Again",
    againHelp: "Write the last stretch again with another seed",
    back: "Nothing was lost while this tab was away.",
    ended: "{written} The model ended the text.",
    fromHere: "Write from here",
    headsOff: "Heads off: {n} of {all} ({names}). All numbers and all writing are without them.",
    headsOn: "Switch them on",
    many: "{n} tokens written.",
    now: "Writing.",
    one: "1 token written.",
    redo: "Redo",
    redoHelp: "Forward to the version that you undid",
    speed: "{n} tokens a second",
    stillHere: "Your text is still here.",
    stop: "Stop",
    stopped: "{written} Stopped.",
    takenEnd: "The text ends here.",
    turnOver: "{written} The turn is over.",
    undo: "Undo",
    undoHelp: "Back to the version before",
    write: "Write",
  },
};

/** The string with this name, such as "views.why", each {value} filled in. */
export function string(name, values = {}) {
  return say(name, values).join("");
}

/** The same as nodes, to be appended to an element; the values can be nodes, too. */
export function say(name, values = {}) {
  const [group, key] = name.split(".");
  const found = STRINGS[group]?.[key];
  if (found === undefined) throw new Error(`no string is named ${name}`);

  const parts = found.split(/\{(\w+)\}/); // words, name, words, name, ...
  return parts.map((part, i) => (i % 2 === 0 ? part : values[part])).filter((part) => part !== "");
}
