# The floors of lib/, and what may see what; floors.sh reads includes by it, layers.sh calls.
function floor_of(folder) { return folder in floor ? floor[folder] : -1 }
function may_see(from, to) {
    if (floor_of(from) < 0 || floor_of(to) < 0) return 0
    if (to != from && floor_of(to) >= floor_of(from)) return 0
    return !(from in only) || index(only[from], " " to " ") > 0
}
BEGIN {
    floor["base"] = 0; floor["solve"] = 1; floor["data"] = 1; floor["cost"] = 2
    floor["parallel"] = 3; floor["simulate"] = 3; floor["pack"] = 4; floor["schedule"] = 4
    floor["step"] = 4; floor["pipeline"] = 4; floor["tasks"] = 4; floor["epoch"] = 5; floor["vlm"] = 5; floor["io"] = 6
    only["io"] = " io vlm simulate cost data solve base "; # files know no planner but the one whose plans they replay
    only["simulate"] = " simulate data cost solve base "
    floor["glpk"] = 1; only["glpk"] = " glpk "
    only["solve"] = " solve base "; only["data"] = " data base "
}
