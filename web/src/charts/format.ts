// In place of d3-format, which d3-scale asks for the words of its ticks: the charts have words of their own, in
// `model/number`, and this would be a fortieth of the page.

function none(): never {
  throw new Error('a chart words its ticks itself');
}

export {
  none as format,
  none as formatPrefix,
  none as formatSpecifier,
  none as precisionFixed,
  none as precisionPrefix,
  none as precisionRound,
};
